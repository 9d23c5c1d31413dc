"""JSON from outside: what is read, and what is refused with a reason."""

import json
import time

import pytest

from orchestrator.definition.codec import MAX_BYTES, MAX_DEPTH
from orchestrator.exceptions import InvalidMessage
from orchestrator.strict_json import MAX_KEYS, TooLarge, parse
from tests.services.cases import cases
from tests.services.patience import quickest


def nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


def with_keys(count: int) -> bytes:
    return json.dumps({f"k{number}": number for number in range(count)}).encode()


def of_size(size: int) -> bytes:
    return b'"' + b"x" * (size - 2) + b'"'


@cases(
    "raw, value",
    (b'{"type": "Paid", "data": {"n": 50}}', {"type": "Paid", "data": {"n": 50}}),
    (b"[1, 2.5, -0.0, true, false, null]", [1, 2.5, -0.0, True, False, None]),
    ('"注文 ⚡"'.encode(), "注文 ⚡"),
    (rb'"\u26a1 \ud83d\ude80 \" \\ [{:"', '⚡ 🚀 " \\ [{:'),
    (b" \n\t{} ", {}),
    (b'{"a": {"a": 1}, "b": [{"a": 2}]}', {"a": {"a": 1}, "b": [{"a": 2}]}),
)
def test_json_is_read(raw: bytes, value: object) -> None:
    assert parse(raw) == value


@cases("raw", nested(MAX_DEPTH), with_keys(MAX_KEYS), of_size(MAX_BYTES))
def test_the_limits_themselves_are_allowed(raw: bytes) -> None:
    assert parse(raw) == json.loads(raw)


def test_brackets_and_colons_in_text_are_only_text() -> None:
    text = '[{:"\\' * 6_000

    assert parse(json.dumps([text]).encode()) == [text]


@cases(
    "raw, reason",
    (of_size(MAX_BYTES + 1), "larger than 256 KiB"),
    (nested(MAX_DEPTH + 1), "nested deeper than 64"),
    (nested(1_000), "nested deeper than 64"),
    (b'{"a":' * 1_000 + b"1" + b"}" * 1_000, "nested deeper than 64"),
    (b"[" * 100_000, "nested deeper than 64"),
    (with_keys(MAX_KEYS + 1), "more than 5,000 keys"),
    (b'{"a": 1, "a": 2}', "occurs twice"),
    (rb'{"a": 1, "\u0061": 2}', "occurs twice"),
    (b'[{"b": {"a": 1, "a": 1}}]', "occurs twice"),
    (b"NaN", "NaN is not a JSON number"),
    (b'{"price": Infinity}', "Infinity is not a JSON number"),
    (b"[-Infinity]", "-Infinity is not a JSON number"),
    (b"1e999", "too large"),
    (b"[" + b"9" * 5_000 + b"]", "too many digits"),
    (b'{"a": "\xff"}', "not UTF-8 at byte 7"),
    ("\ufeff{}".encode(), "not JSON"),
    ('{"a": 1}'.encode("utf-16"), "not UTF-8"),
    (b'"a\x00b"', "not JSON"),
    (rb'{"a": ["x", "\u0000"]}', "a.1: text must not contain the NUL"),
    (rb'{"\u0000": 1}', "must not contain the NUL"),
    (rb'{"a": {"b": "\ud800"}}', "a.b: text must not contain lone surrogates"),
    *((raw, "not JSON") for raw in (b"", b"order=1&market=both", b'{"a": 1,}')),
    *((raw, "not JSON") for raw in (b'{"a": 1} {"b": 2}', b"{'a': 1}", b"]]]]")),
    *((raw, "not JSON") for raw in (b'{"a": "unfinished', b'"unfinished\\')),
)
def test_anything_else_is_refused_with_a_reason(raw: bytes, reason: str) -> None:
    with pytest.raises(InvalidMessage, match=reason):
        parse(raw)


@cases("raw", of_size(MAX_BYTES + 1), nested(MAX_DEPTH + 1), with_keys(MAX_KEYS + 1))
def test_too_much_is_told_apart_from_what_is_no_json(raw: bytes) -> None:
    with pytest.raises(TooLarge):
        parse(raw)
    with pytest.raises(InvalidMessage) as refused:
        parse(b"{")
    assert not isinstance(refused.value, TooLarge)


@cases(
    "raw",
    b"[" * MAX_BYTES,
    b'"' + rb"\"" * (MAX_BYTES // 2 - 1),
    b'"' + b"\\" * (MAX_BYTES - 1),
    b'"' * (MAX_BYTES - 1),
    b'{"a":' * (MAX_BYTES // 6),
    b"9" * MAX_BYTES,
    with_keys(15_000),
)
def test_hostile_input_is_refused_within_50_ms(raw: bytes) -> None:
    def refuse() -> None:
        with pytest.raises(InvalidMessage):
            parse(raw)

    taken = quickest(refuse, 0.05, time.process_time)

    # A machine that is slower just now also reads an honest body of that size more slowly.
    assert taken < max(0.05, 3 * quickest(read_honest, 0, time.process_time))


def read_honest() -> None:
    parse(json.dumps(["ab"] * (MAX_BYTES // 6 - 1)).encode())


def test_the_reason_names_where_the_bad_value_stands() -> None:
    with pytest.raises(InvalidMessage) as refused:
        parse(rb'{"items": [{"name": "ok"}, {"name": "\u0000"}]}')

    assert refused.value.path == "items.1.name"
