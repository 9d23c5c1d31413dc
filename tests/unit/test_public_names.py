"""What projects and programs rely on: no name of it goes, and each new one is listed in tests/data/public_names.txt.

To list what is new, run `python3 manage.py shell` with `import tests.unit.test_public_names as names; names.keep()`.
"""

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from django.apps import apps
from django.contrib.auth import get_permission_codename
from django.urls import URLPattern, URLResolver, get_resolver

from monitoring.api.document import openapi_document
from orchestrator.engine.operations.registry import OPERATIONS
from tests.services.words import words

LISTED = Path(__file__).parent.parent / "data/public_names.txt"
DOCS = LISTED.parent.parent.parent / "docs"
IMPORT = re.compile(
    r"^from ((?:orchestrator|monitoring)[\w.]*) import (\([^)]*\)|.*)$", re.MULTILINE
)
EXPORTING = (
    "monitoring.routing",
    "orchestrator",
    "orchestrator.definition",
    "orchestrator.notices",
    "orchestrator.testing",
)
"""Packages and modules with a public `__all__`."""
NAMED_IN_SETTINGS = words("""
    monitoring.urls.urlpatterns orchestrator.asgi.application orchestrator.grants.GrantsBackend
    orchestrator.middleware.CompressedFilesMiddleware
    orchestrator.middleware.ContentSecurityPolicyMiddleware
    orchestrator.middleware.InOneThreadMiddleware orchestrator.middleware.NulMiddleware
    orchestrator.middleware.SignInRequiredMiddleware orchestrator.settings orchestrator.testing.plugin
    orchestrator.urls.urlpatterns orchestrator.webhooks.urls.urlpatterns
""")
"""What the settings and addresses of projects name by its dotted path."""


def public_names() -> Iterator[str]:
    for module in EXPORTING:
        yield from (f"export {module}.{name}" for name in import_module(module).__all__)
    for model in apps.get_app_config("orchestrator").get_models():
        for field in model._meta.concrete_fields:
            column = f"{model._meta.db_table}.{field.column}"
            yield f"column {column}"
            yield from (f"word {column} {value!r}" for value, _ in field.flatchoices)
        usual = model._meta.default_permissions
        yield from (
            f"permission {get_permission_codename(one, model._meta)}" for one in usual
        )
        yield from (f"permission {code}" for code, _ in model._meta.permissions)
    yield from (f"operation {name}" for name in OPERATIONS)
    yield from documented()
    yield from addresses(get_resolver("monitoring.urls"), "monitoring")
    yield from addresses(get_resolver("orchestrator.webhooks.urls"), "webhooks")
    yield from fields()


def documented() -> Iterator[str]:
    """Yield what the documentation imports."""
    for page in DOCS.glob("*.md"):
        for module, names in IMPORT.findall(page.read_text()):
            for name in re.findall(r"\w+", names):
                yield f"documented {module}.{name}"


def addresses(found: URLResolver | URLPattern, before: str) -> Iterator[str]:
    if isinstance(found, URLPattern):
        yield f"address {before}{found.pattern} {found.name}"
        return
    for below in found.url_patterns:
        yield from addresses(below, f"{before}{found.pattern}")


def fields() -> Iterator[str]:
    """Yield the parameters of the API's calls and the fields of its answers."""
    description = openapi_document()
    for address, methods in description["paths"].items():
        for method, call in methods.items():
            named = [one["name"] for one in call.get("parameters", ())]
            yield f"call {method} {address} {' '.join(sorted(named))}"
    schemas: dict[str, Any] = description["components"]["schemas"]
    for name, schema in schemas.items():
        yield from (f"field {name}.{field}" for field in schema.get("properties", ()))


def importable(path: str) -> bool:
    module, _, name = path.rpartition(".")
    try:
        import_module(path)
    except ImportError:
        return hasattr(import_module(module), name)
    return True


def test_public_names_stay_and_new_ones_are_listed() -> None:
    found, listed = set(public_names()), set(LISTED.read_text().splitlines())

    assert (sorted(listed - found), sorted(found - listed)) == ([], [])


def test_what_settings_and_the_documentation_name_can_be_imported() -> None:
    named = [*NAMED_IN_SETTINGS, *(one.split()[1] for one in documented())]

    assert [path for path in named if not importable(path)] == []


def keep() -> None:
    """Write the list anew."""
    LISTED.write_text("\n".join(sorted(set(public_names()))) + "\n")
