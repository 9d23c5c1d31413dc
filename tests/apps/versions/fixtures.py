"""Makes both versions of everything known to this process for a module of tests."""

from tests.apps.versions import claims, letters
from tests.services.crews import knowing

__all__ = ["versions"]


versions = knowing(claims.Claim, claims.ClaimInCents, *letters.ALL, autouse=False)
