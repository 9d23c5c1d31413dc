"""The rate of a source: events a second in the long run, and how many at once.

Valkey counts, for all web servers together, by its clock. While it is away every event passes: one too many does less
harm than a lost one.
"""

from __future__ import annotations

import logging
import math
import time
from functools import cache

from redis import Redis
from redis.exceptions import RedisError

from orchestrator.configuration.webhook_settings import Rate
from orchestrator.definition.declarations.process_definition import DEFAULT_QUEUE
from orchestrator.queue import connect_queue, set_timeouts
from orchestrator.webhooks.not_accepted import NotAccepted

log = logging.getLogger(__name__)

PATIENCE = 0.5
"""Seconds within which Valkey has to answer."""
SILENCE = 1.0
"""Seconds without a question to Valkey after one without an answer."""

COUNT = """
local now = redis.call("TIME")
local at = now[1] + now[2] / 1000000
local gap, burst = 1 / ARGV[1], tonumber(ARGV[2])
local due = math.max(tonumber(redis.call("GET", KEYS[1]) or 0), at)
local number = tonumber(ARGV[3])
local wait = due - (burst - number) * gap - at
if wait > 0.000001 then return string.format("%.6f", wait) end
due = due + number * gap
redis.call("SET", KEYS[1], string.format("%.6f", due), "PX", math.ceil((due - at) * 1000))
return "0"
"""
"""The generic cell rate algorithm (ITU-T I.371): the key has the time until which the events so far use up the rate."""

_silent = {"until": 0.0}


def check_rate(source: str, rate: Rate | None, number: int = 1) -> None:
    """Count `number` events of a source against its rate.

    Raises:
        NotAccepted: 429, with the seconds to wait; 413 if that number at once is never allowed.
    """
    if rate is None:
        return
    if number > rate[1]:
        detail = f"this source may send {rate[1]} events at once; send a shorter list"
        raise NotAccepted(413, "too_large", detail)
    if time.monotonic() < _silent["until"]:
        return
    try:
        key = f"procession:webhooks:{source}"
        wait = float(_valkey().eval(COUNT, 1, key, *map(str, (*rate, number))))
    except (RedisError, OSError) as error:
        _silent["until"] = time.monotonic() + SILENCE
        log.warning("webhooks are not counted, Valkey is out of reach: %s", error)
        return
    if wait > 0:
        detail = f"this source may send {rate[0]:g} events a second; send it again later, with the same id"
        raise NotAccepted(429, "too_many", detail, math.ceil(wait))


@cache
def _valkey() -> Redis:
    connection: Redis = connect_queue(DEFAULT_QUEUE).connection
    set_timeouts(connection, PATIENCE)  # the sender waits for the answer
    return connection
