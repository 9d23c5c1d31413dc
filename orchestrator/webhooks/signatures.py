"""Signatures after Standard Webhooks: HMAC-SHA256 over id, timestamp and body, within five minutes of now.

See the specification at standardwebhooks.com. Every source has its own keys; with two, one can be replaced while the
other still signs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from orchestrator.webhooks.not_accepted import NotAccepted

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"


def check_signature(
    keys: Sequence[str], headers: Mapping[str, str], body: bytes
) -> str:
    """Check that one of the keys signed exactly this body, just now.

    Returns:
        The message's id.

    Raises:
        NotAccepted: 401, with the reason.
    """
    signed = {name: headers.get(name, "") for name in (ID, TIMESTAMP, SIGNATURE)}
    if missing := [name for name, value in signed.items() if not value]:
        raise _refusal(f"send the header {missing[0]}")
    reasons = [_reason(key, signed, body) for key in keys]
    if "" in reasons:
        return signed[ID]
    raise _refusal(f"{reasons[0]}; sign id.timestamp.body with the key of this source")


def _reason(key: str, signed: dict[str, str], body: bytes) -> str:
    """Return why a key does not fit; "" if it does."""
    try:
        Webhook(key).verify(body, signed, json_parse=False)
    except WebhookVerificationError as error:
        return str(error)
    except ValueError:  # a body or a signature that is no text, or no base64
        return "the signature cannot be read"
    return ""


def _refusal(detail: str) -> NotAccepted:
    return NotAccepted(401, "bad_signature", detail)
