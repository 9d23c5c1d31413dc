"""The requests of open pages take turns; no others do."""

import asyncio
from typing import Any

import pytest

from monitoring.live import turns
from monitoring.live.turns import AT_ONCE, LONGEST, Need, TurnLimiter

pytestmark = pytest.mark.asyncio


class Site:
    """An application that answers when it is told to."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.answers = asyncio.Event()

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        self.asked.append(scope)
        await self.answers.wait()
        await send({"type": "http.response.start", "status": 200})


def asking(query: bytes = b"rows=1&since=3", method: str = "GET") -> dict[str, Any]:
    headers = [(b"hx-request", b"true")]
    scope = {"type": "http", "method": method, "query_string": query}
    return {**scope, "headers": headers}


async def sent(site: TurnLimiter, scope: dict[str, Any]) -> int:
    """The status that is answered."""
    return int((await answered(site, scope))["status"])


async def answered(site: TurnLimiter, scope: dict[str, Any]) -> dict[str, Any]:
    """The status that is answered, and its headers."""
    messages: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        messages.append(message)

    await site(scope, None, send)
    return messages[0]


async def crowd(number: int = AT_ONCE) -> tuple[Site, TurnLimiter, list[Any]]:
    """A site that so many open pages ask, none of which is answered yet."""
    site = Site()
    in_turn = TurnLimiter(site)
    asked = [asyncio.create_task(sent(in_turn, asking())) for _ in range(number)]
    await settled()
    return site, in_turn, asked


async def settled() -> None:
    """Everybody has come as far as they can."""
    for _ in range(100):
        await asyncio.sleep(0)


async def test_some_open_pages_are_answered_at_once_and_the_others_after_them() -> None:
    site, _, many = await crowd(50)

    assert len(site.asked) == AT_ONCE

    site.answers.set()
    assert await asyncio.gather(*many) == [200] * 50


@pytest.mark.parametrize(
    "scope",
    [
        asking(b""),
        asking(b"insince=3"),
        asking(method="POST"),
        {**asking(), "headers": []},
    ],
)
async def test_what_a_person_asks_for_does_not_wait(scope: dict[str, Any]) -> None:
    site, in_turn, tasks = await crowd(50)

    tasks.append(asyncio.create_task(sent(in_turn, scope)))

    await settled()
    assert scope in site.asked
    site.answers.set()
    await asyncio.gather(*tasks)


async def test_who_has_waited_long_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    site, in_turn, first = await crowd()
    monkeypatch.setattr(turns, "PATIENCE", 0.01)

    answer = await answered(in_turn, asking())

    assert answer["status"] == 503
    assert (b"procession-late", b"1") in answer["headers"]
    site.answers.set()
    await asyncio.gather(*first)
    assert len(site.asked) == AT_ONCE
    assert await sent(in_turn, asking()) == 200


async def test_who_had_no_answer_most_often_is_next_or_who_came_first() -> None:
    site, in_turn, first = await crowd()
    waiting = []
    for said in (b"a", b"b", b"1", b"c", b"12", b"1", b"99999999", b"-1"):
        scope = asking()
        scope["headers"].append((b"procession-unanswered", said))
        waiting.append(asyncio.create_task(sent(in_turn, scope)))
    await settled()

    site.answers.set()

    assert set(await asyncio.gather(*first, *waiting)) == {200}
    served = [scope["headers"][1][1].decode() for scope in site.asked[AT_ONCE:]]
    assert served == ["12", "1", "1", "a", "b", "c", "99999999", "-1"]


async def test_a_turn_that_nobody_waits_for_any_more_is_the_next_ones() -> None:
    site, in_turn, first = await crowd()
    gone, here = (asyncio.create_task(sent(in_turn, asking())) for _ in range(2))
    await settled()

    gone.cancel()
    site.answers.set()

    assert await here == 200
    await asyncio.gather(*first)
    assert await sent(in_turn, asking()) == 200


async def test_a_turn_ends_with_an_error_too() -> None:
    async def broken(*_: Any) -> None:
        raise ZeroDivisionError

    in_turn = TurnLimiter(broken)

    for _ in range(AT_ONCE + 1):
        with pytest.raises(ZeroDivisionError):
            await sent(in_turn, asking())


async def test_the_more_and_the_slower_pages_are_the_slower_is_their_pace() -> None:
    need = Need()
    before = need.pace(100)

    assert need.pace(200) == pytest.approx(2 * before, abs=0.01)
    for _ in range(1_000):
        need.add(1.0)
    assert need.pace(1) == pytest.approx(2 / AT_ONCE, abs=0.001)
    assert need.pace(1_000) == LONGEST
