"""System checks of a project's settings, each with the very lines to add.

E006 the code names a queue that RQ does not have; E007 a value or a key of settings.PROCESSION cannot be used; E009 RQ
does not have the default queue; E010 times have no zone; E011 the database is of an unknown kind; E012 a recipient of
notices cannot be used; E013 a webhook source cannot be used; E014 the site's address or the token of its metrics
cannot be used; E015 routers send models to another database; E017 PostgreSQL is reached by psycopg2; W001 the jobs of
a queue are not JSON; W002 transactions on SQLite do not begin with their lock; W003 notices have no links; W004 a
deadline notifies a recipient that the settings do not have; W007 the proxy in front is not named.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error
from django.db import DEFAULT_DB_ALIAS, connections, router

from orchestrator import registry
from orchestrator.configuration.conf import CONF, Setting, SettingRefused, conf
from orchestrator.configuration.environment import SQLITE_OPTIONS
from orchestrator.configuration.notice_settings import RECIPIENTS, Recipient, recipients
from orchestrator.configuration.site_settings import TEXT_SETTINGS, site_url
from orchestrator.configuration.webhook_settings import (
    SOURCES,
    WEBHOOKS,
    unknown_source_lines,
)
from orchestrator.containers import group_by_key
from orchestrator.definition.declarations.process_definition import DEFAULT_QUEUE
from orchestrator.notices.channel import channel_of, redact
from orchestrator.queue import LONGEST_QUEUE, rq_name

JSON = "rq.serializers.JSONSerializer"
SETTINGS: tuple[Setting[Any], ...] = CONF, RECIPIENTS, *TEXT_SETTINGS, *WEBHOOKS
PSYCOPG = 'python -m pip install "psycopg[binary]>=3.3,<4"'
VENDORS = ("postgresql", "sqlite")


def register_settings_checks() -> None:
    """Register the checks."""
    for found in (_values, _queues, _serializers, _database, _routers, _notices):
        checks.register(make_check(found), "orchestrator")
    checks.register(make_check(_proxies), checks.Tags.security, deploy=True)


def make_check(found: Callable[[], Iterator[CheckMessage]]) -> Any:
    """Return a function that yields messages as a check of Django; a refused setting, told by `_values`, ends it."""

    def check(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
        try:
            return list(found())
        except SettingRefused:
            return []  # which _values tells

    return check


def _values() -> Iterator[CheckMessage]:
    """Check the settings of a project's own; the bundled project checks its variables earlier."""
    for setting in SETTINGS:
        try:
            setting.read(setting.raw_value())
        except SettingRefused as refused:
            for mistake in refused.mistakes:
                yield Error(mistake, hint=setting.remedy, id=setting.check)
    hint = f"Correct the name, or add the keys of the source to {SOURCES.name}."
    for mistake in unknown_source_lines():
        yield Error(mistake, hint=hint, id=SOURCES.check)


def _queues() -> Iterator[CheckMessage]:
    """No worker would run the work of a queue that the settings do not have."""
    known, default = _rq_queues(), conf().DEFAULT_QUEUE
    if default not in known:
        yield Error(
            f"RQ_QUEUES has no queue {default}, by which workers are woken.",
            hint=f"Add to the settings:\n{_queue_lines(default)}",
            id="orchestrator.E009",
        )
    for named_by, queue, obj in registry.named_queues():
        if mistake := _queue_mistake(queue):
            said, hint = mistake
            said = f"{named_by} is to run on the queue {queue}, {said}."
            yield Error(said, hint=hint, obj=obj, id="orchestrator.E006")


def _queue_mistake(queue: str) -> tuple[str, str] | None:
    """Return what is wrong with a queue that the code names, and a hint."""
    known = _rq_queues()
    if queue == DEFAULT_QUEUE:
        return None
    if queue == conf().DEFAULT_QUEUE:
        said = "which is what RQ calls the default one"
        return said, "Leave the name of the queue out."
    if len(queue) > LONGEST_QUEUE:
        said = f"whose name has {len(queue)} characters"
        return said, f"Give it one of at most {LONGEST_QUEUE}."
    if queue in known:
        return None
    hint = "Correct the name, or add the queue: by PROCESSION_QUEUES, or to the settings of your own project:\n"
    said = f"which does not exist; known queues: {_join_names(known)}"
    return said, hint + _queue_lines(queue)


def _serializers() -> Iterator[CheckMessage]:
    """RQ's own pages and workers follow the settings; bells are JSON in any case. Queues of others are theirs."""
    known = _rq_queues()
    for name in sorted(known.keys() & set(map(rq_name, registry.work_queues()))):
        if "JSON" not in str(known[name].get("SERIALIZER", "")).upper():
            yield checks.Warning(
                f"The queue {name} does not say that its jobs are JSON.",
                hint="RQ's own pages would unpickle anything that somebody with access to Redis writes. Add to the "
                f'settings:\nRQ_QUEUES["{name}"]["SERIALIZER"] = "{JSON}"',
                id="orchestrator.W001",
            )


def _database() -> Iterator[CheckMessage]:
    database = connections[DEFAULT_DB_ALIAS]
    options = database.settings_dict["OPTIONS"]
    if not settings.USE_TZ:
        yield Error(
            "USE_TZ is off: leases and deadlines need times with a zone.",
            hint="Add to the settings:\nUSE_TZ = True",
            id="orchestrator.E010",
        )
    if database.vendor not in VENDORS:
        yield Error(
            f"The default database is of the kind {database.vendor}: the engine knows PostgreSQL and SQLite.",
            hint='Change in the settings:\nDATABASES["default"]["ENGINE"] = "django.db.backends.postgresql"',
            id="orchestrator.E011",
        )
    elif database.vendor == "postgresql" and not _has_psycopg3():
        yield Error(
            "Django reaches PostgreSQL by psycopg2: the engine needs psycopg 3.",
            hint=f"Install it; Django then takes it by itself:\n{PSYCOPG}",
            id="orchestrator.E017",
        )
    elif database.vendor == "sqlite" and options.get("transaction_mode") != "IMMEDIATE":
        yield checks.Warning(
            "Transactions on SQLite do not begin with their lock: with workers beside it some would fail with "
            '"database is locked".',
            hint='Add to the settings:\nDATABASES["default"]["OPTIONS"] = '
            + json.dumps(SQLITE_OPTIONS, indent=4),
            id="orchestrator.W002",
        )


def _has_psycopg3() -> bool:
    # Without the driver it cannot be imported.
    from django.db.backends.postgresql import psycopg_any  # noqa: PLC0415

    return psycopg_any.is_psycopg3


def _routers() -> Iterator[CheckMessage]:
    """The engine's own SQL goes to the default database, whatever routers say of Django's."""
    elsewhere = group_by_key(
        (alias, model.__name__)
        for model in apps.get_app_config("orchestrator").get_models()
        for alias in {router.db_for_read(model), router.db_for_write(model)}
    )
    elsewhere.pop(DEFAULT_DB_ALIAS, None)
    for alias, names in sorted(elsewhere.items()):
        yield Error(
            f"DATABASE_ROUTERS send {', '.join(names)} to the database {alias!r}: the engine works in the default one "
            "alone.",
            hint="Let the routers return None for the models of the app orchestrator, or call that database "
            '"default".',
            id="orchestrator.E015",
        )


def _proxies() -> Iterator[CheckMessage]:
    """The bundled project, which counts wrong passwords by address, must know the addresses behind its proxy."""
    if not getattr(settings, "ADDRESSES_KNOWN", True):
        yield checks.Warning(
            "PROCESSION_TRUSTED_PROXIES names no proxy, so all requests seem to come from one address: wrong passwords "
            "are counted by account alone, and audit and webhooks have the proxy's address.",
            hint="Name the address or the network of the proxy that speaks HTTPS:\n"
            "PROCESSION_TRUSTED_PROXIES=127.0.0.1",
            id="orchestrator.W007",
        )


def _notices() -> Iterator[CheckMessage]:
    """A recipient with a mistake gets no notice, nor does one that a deadline names and the settings do not have."""
    known = recipients()
    for name, recipient in known.items():
        for wrong in _recipient_mistakes(recipient):
            said = f"{RECIPIENTS.place((name,))} {wrong}"
            yield Error(said, hint=RECIPIENTS.remedy, id=RECIPIENTS.check)
    if known and not site_url():
        yield checks.Warning(
            "Notices have no links to the console, whose public address is not known.",
            hint='Add to the settings:\nPROCESSION_SITE_URL = "https://procession.example.org"',
            id="orchestrator.W003",
        )
    for definition in registry.process_managers():
        wanted = {name for row in definition.all_rows() for name in row.notifies}
        for name in sorted(wanted - known.keys()):
            yield checks.Warning(
                f"{definition.name} notifies {name!r}, which {RECIPIENTS.place(())} does not have; there are "
                f"{_join_names(known)}.",
                hint=f'Add to the settings:\nPROCESSION_NOTICES["{name}"] = {{"to": ["..."]}}',
                id="orchestrator.W004",
            )


def _recipient_mistakes(recipient: Recipient) -> Iterator[str]:
    known = {definition.name for definition in registry.definitions.values()}
    for missing in sorted(set(recipient.definitions) - known):
        yield f"is about {missing!r}, which is no definition's name; there are {_join_names(known)}."
    try:
        channel = channel_of(recipient)
    except Exception as error:  # noqa: BLE001  # a class of the project's
        said = redact(f"{type(error).__name__}: {error}", recipient.secrets)
        yield f"has a channel that cannot be made ({said})."
    else:
        if not callable(getattr(channel, "send", None)):
            yield "has a channel without a method send(message)."


def _join_names(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _rq_queues() -> dict[str, dict[str, Any]]:
    """Return RQ's queues, by name."""
    return getattr(settings, "RQ_QUEUES", None) or {}


def _queue_lines(name: str) -> str:
    """Return the lines that add a queue to RQ's settings: where the others are, if there are any."""
    for other in _rq_queues():
        like = f'**RQ_QUEUES["{other}"], "SERIALIZER": "{JSON}"'
        return f'RQ_QUEUES["{name}"] = {{{like}}}'
    like = f'"URL": "redis://127.0.0.1:6379/0", "SERIALIZER": "{JSON}"'
    return f'RQ_QUEUES = {{"{name}": {{{like}}}}}'
