"""Readiness of the parts that Procession needs: the database, Redis, and workers for every queue with due work."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

from django.db import DatabaseError

from monitoring.probes.timed_questions import TimedQuestion
from orchestrator.setup_status import all_redis_respond, unattended_queues

log = logging.getLogger(__name__)

PARTS = ("database", "redis", "workers")

_queues = TimedQuestion(unattended_queues)
_redis = TimedQuestion(all_redis_respond)
_reasons: dict[str, str] = {}
"""The logged reasons, by the part that is down."""


def readiness(besides: Collection[str] = ()) -> dict[str, bool]:
    """Whether each part is up, in the order of `PARTS`.

    Without a database the workers are unknown, and left out. All questions run at the same time, and take at most
    `PATIENCE` seconds.

    Args:
        besides: parts to leave out.
    """
    found = dict.fromkeys(PARTS, "")
    queues, redis = _queues.ask(), _redis.ask()
    try:
        if without := queues.answer():
            found["workers"] = f"none for {', '.join(without)}, where work is due"
    except (DatabaseError, OSError, TimeoutError) as error:
        found["database"] = repr(error)
        del found["workers"]
    except Exception as error:  # noqa: BLE001  # a mistake in a setting
        found["workers"] = repr(error)
    try:
        if not redis.answer():
            found["redis"] = "it does not answer"
    except TimeoutError:
        found["redis"] = "it does not answer in time"
    except Exception as error:  # noqa: BLE001  # a mistake in its settings
        found["redis"] = repr(error)
    _log(found)
    return {part: not found[part] for part in found if part not in besides}


def _log(found: Mapping[str, str]) -> None:
    """Log once why a part is down, and that it is up again."""
    for part, reason in found.items():
        if reason and part not in _reasons:
            log.warning("not ready, %s: %s", part, reason)
            _reasons[part] = reason
        elif not reason and _reasons.pop(part, ""):
            log.warning("ready again: %s", part)
