"""System checks of a project's settings, each with the very lines to add.

E006 a queue is named that RQ does not have; E007 a value or a key of settings.PROCESSION cannot be used; E009 RQ does
not have the default queue; E010 times have no zone; E011 the database is of an unknown kind; E012 somebody who is to be
told cannot be; E013 a webhook source cannot be used; E014 the site's address or the token of its metrics cannot be;
E015 routers send models to another database; W001 a queue of ours says that its jobs are pickled; W002 on SQLite,
writers would get in each other's way; W003 notices have no links; W004 a deadline notifies somebody whom the settings
do not name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error
from django.db import DEFAULT_DB_ALIAS, connections, router

from orchestrator import registry
from orchestrator.collecting import gathered
from orchestrator.conf import CONF, Setting, SettingRefused, conf
from orchestrator.definition.process_definition import DEFAULT_QUEUE
from orchestrator.notice_settings import RECIPIENTS, Recipient, recipients
from orchestrator.notices.channel import channel_of, without
from orchestrator.queue import LONGEST_QUEUE, in_rq
from orchestrator.site_settings import TEXTS, site_url
from orchestrator.webhook_settings import SOURCES, WEBHOOKS, limits_of_nobody

JSON = "rq.serializers.JSONSerializer"
SETTINGS: tuple[Setting[Any], ...] = CONF, RECIPIENTS, *TEXTS, *WEBHOOKS
VENDORS = ("postgresql", "sqlite")
SQLITE_LINES = """\
DATABASES["default"]["OPTIONS"] = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
}"""


def connect() -> None:
    """Registers the checks."""
    for found in (_values, _queues, _serializers, _database, _routers, _notices):
        checks.register(as_check(found), "orchestrator")


def as_check(found: Callable[[], Iterator[CheckMessage]]) -> Any:
    """A check as Django runs it, of what a function finds; where a setting is refused there is nothing else to find."""

    def check(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
        try:
            return list(found())
        except SettingRefused:
            return []  # which _values tells

    return check


def _values() -> Iterator[CheckMessage]:
    """What the bundled project's variables say is refused earlier; this is for settings of a project's own."""
    for setting in SETTINGS:
        try:
            setting.read(setting.given())
        except SettingRefused as refused:
            for mistake in refused.mistakes:
                yield Error(mistake, hint=setting.remedy, id=setting.check)
    hint = f"Correct the name, or add the keys of the source to {SOURCES.name}."
    for mistake in limits_of_nobody():
        yield Error(mistake, hint=hint, id=SOURCES.check)


def _queues() -> Iterator[CheckMessage]:
    """Work on a queue that the settings do not have would be stored, and never be run."""
    known, default = _known(), conf().DEFAULT_QUEUE
    if default not in known:
        yield Error(
            f"RQ_QUEUES has no queue {default}, by which workers are woken.",
            hint=f"Add to the settings:\n{_lines(default)}",
            id="orchestrator.E009",
        )
    for named_by, queue, obj in registry.queues_named():
        said = hint = ""
        if queue == default != DEFAULT_QUEUE:
            said = "which is what RQ calls the default one"
            hint = "Leave the name of the queue out."
        elif len(queue) > LONGEST_QUEUE:
            said = f"whose name has {len(queue)} characters"
            hint = f"Give it one of at most {LONGEST_QUEUE}."
        elif queue != DEFAULT_QUEUE and queue not in known:
            said = f"which does not exist; known queues: {_listed(known)}"
            hint = (
                "Correct the name, or add the queue: by PROCESSION_QUEUES, or to the settings of a project of your "
                f"own:\n{_lines(queue)}"
            )
        if said:
            said = f"{named_by} is to run on the queue {queue}, {said}."
            yield Error(said, hint=hint, obj=obj, id="orchestrator.E006")


def _serializers() -> Iterator[CheckMessage]:
    """Bells are JSON however; but RQ's own pages and workers go by what the settings say. Others' queues are theirs."""
    known = _known()
    for name in sorted(known.keys() & set(map(in_rq, registry.queues()))):
        if "JSON" not in str(known[name].get("SERIALIZER", "")).upper():
            yield checks.Warning(
                f"The queue {name} does not say that its jobs are JSON.",
                hint="RQ's own pages would unpickle what whoever can write to Redis has put there. Add to the "
                f'settings:\nRQ_QUEUES["{name}"]["SERIALIZER"] = "{JSON}"',
                id="orchestrator.W001",
            )


def _database() -> Iterator[CheckMessage]:
    database = connections[DEFAULT_DB_ALIAS]
    options = database.settings_dict["OPTIONS"]
    if not settings.USE_TZ:
        yield Error(
            "USE_TZ is off: leases and deadlines need moments that are the same everywhere.",
            hint="Add to the settings:\nUSE_TZ = True",
            id="orchestrator.E010",
        )
    if database.vendor not in VENDORS:
        yield Error(
            f"The default database is of the kind {database.vendor}: the engine knows PostgreSQL and SQLite.",
            hint='Change in the settings:\nDATABASES["default"]["ENGINE"] = "django.db.backends.postgresql"',
            id="orchestrator.E011",
        )
    elif database.vendor == "sqlite" and options.get("transaction_mode") != "IMMEDIATE":
        yield checks.Warning(
            "Transactions on SQLite do not begin with their lock: with workers beside it some would fail with "
            '"database is locked".',
            hint=f"Add to the settings:\n{SQLITE_LINES}",
            id="orchestrator.W002",
        )


def _routers() -> Iterator[CheckMessage]:
    """Statements of the engine's own go to the default database, whatever routers say of what Django sends."""
    elsewhere = gathered(
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


def _notices() -> Iterator[CheckMessage]:
    """Whoever is declared wrongly is never told, nor whom a deadline notifies and the settings do not name."""
    known = recipients()
    for name, recipient in known.items():
        for wrong in _mistakes_of(recipient):
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
                f"{definition.name} notifies {name!r}, whom {RECIPIENTS.place(())} does not name; there are "
                f"{_listed(known)}.",
                hint=f'Add to the settings:\nPROCESSION_NOTICES["{name}"] = {{"to": ["..."]}}',
                id="orchestrator.W004",
            )


def _mistakes_of(recipient: Recipient) -> Iterator[str]:
    known = {definition.name for definition in registry.definitions.values()}
    for missing in sorted(set(recipient.definitions) - known):
        yield f"is about {missing!r}, which is no definition's name; there are {_listed(known)}."
    try:
        channel = channel_of(recipient)
    except Exception as error:  # noqa: BLE001  # a class of the project's
        said = without(f"{type(error).__name__}: {error}", recipient.secrets)
        yield f"has a channel that cannot be made ({said})."
    else:
        if not callable(getattr(channel, "send", None)):
            yield "has a channel without a method send(message)."


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _known() -> dict[str, dict[str, Any]]:
    """RQ's queues, by name."""
    return getattr(settings, "RQ_QUEUES", None) or {}


def _lines(name: str) -> str:
    """The lines by which RQ has one more queue: where its others are, if there are any."""
    for other in _known():
        like = f'**RQ_QUEUES["{other}"], "SERIALIZER": "{JSON}"'
        return f'RQ_QUEUES["{name}"] = {{{like}}}'
    like = f'"URL": "redis://127.0.0.1:6379/0", "SERIALIZER": "{JSON}"'
    return f'RQ_QUEUES = {{"{name}": {{{like}}}}}'
