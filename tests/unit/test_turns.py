"""The requests of open pages take turns; no others do."""

import asyncio
from typing import Any

import pytest

from monitoring import turns
from monitoring.turns import AT_ONCE, LONGEST, InTurn, Need

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


async def sent(site: InTurn, scope: dict[str, Any]) -> int:
    """The status that is answered."""
    return int((await answered(site, scope))["status"])


async def answered(site: InTurn, scope: dict[str, Any]) -> dict[str, Any]:
    """The status that is answered, and its headers."""
    messages: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        messages.append(message)

    await site(scope, None, send)
    return messages[0]


async def settled() -> None:
    """Everybody has come as far as they can."""
    for _ in range(100):
        await asyncio.sleep(0)


async def test_some_open_pages_are_answered_at_once_and_the_others_after_them() -> None:
    site = Site()
    in_turn = InTurn(site)
    many = [asyncio.create_task(sent(in_turn, asking())) for _ in range(50)]
    await settled()

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
async def test_what_a_person_asks_for_waits_for_no_open_page(
    scope: dict[str, Any],
) -> None:
    site = Site()
    in_turn = InTurn(site)
    tasks = [asyncio.create_task(sent(in_turn, asking())) for _ in range(50)]
    await settled()

    tasks.append(asyncio.create_task(sent(in_turn, scope)))

    await settled()
    assert scope in site.asked
    site.answers.set()
    await asyncio.gather(*tasks)


async def test_who_has_waited_for_too_long_is_told_so_and_not_worked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site = Site()
    in_turn = InTurn(site)
    first = [asyncio.create_task(sent(in_turn, asking())) for _ in range(AT_ONCE)]
    await settled()
    monkeypatch.setattr(turns, "PATIENCE", 0.01)

    answer = await answered(in_turn, asking())

    assert answer["status"] == 503
    assert (b"procession-late", b"1") in answer["headers"]
    site.answers.set()
    await asyncio.gather(*first)
    assert len(site.asked) == AT_ONCE
    assert await sent(in_turn, asking()) == 200


async def test_who_had_no_answer_most_often_is_next_and_of_equals_who_came_first() -> (
    None
):
    site = Site()
    in_turn = InTurn(site)
    said = ["a", "b", "1", "c", "12", "1", "99999999", "-1"]
    first = [asyncio.create_task(sent(in_turn, asking())) for _ in range(AT_ONCE)]
    await settled()
    scopes = [
        {**one, "headers": [*one["headers"], (b"procession-unanswered", it.encode())]}
        for it in said
        for one in [asking()]
    ]
    waiting = [asyncio.create_task(sent(in_turn, scope)) for scope in scopes]
    await settled()

    site.answers.set()

    assert set(await asyncio.gather(*first, *waiting)) == {200}
    served = [scope["headers"][1][1].decode() for scope in site.asked[AT_ONCE:]]
    assert served == ["12", "1", "1", "a", "b", "c", "99999999", "-1"]


async def test_a_turn_that_nobody_waits_for_any_more_is_the_next_ones() -> None:
    site = Site()
    in_turn = InTurn(site)
    first = [asyncio.create_task(sent(in_turn, asking())) for _ in range(AT_ONCE)]
    await settled()
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

    in_turn = InTurn(broken)

    for _ in range(AT_ONCE + 1):
        with pytest.raises(ZeroDivisionError):
            await sent(in_turn, asking())


async def test_the_more_pages_and_the_longer_they_take_the_slower_is_their_pace() -> (
    None
):
    need = Need()
    before = need.pace(100)

    assert need.pace(200) == pytest.approx(2 * before, abs=0.01)
    for _ in range(1_000):
        need.add(1.0)
    assert need.pace(1) == pytest.approx(2 / AT_ONCE, abs=0.001)
    assert need.pace(1_000) == LONGEST
