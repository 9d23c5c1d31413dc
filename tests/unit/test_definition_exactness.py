"""What is written is read back as the same value, or refused with the place and what would come back."""

from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, Flag, IntEnum, StrEnum
from types import SimpleNamespace
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from pydantic import (
    AllowInfNan,
    BaseModel,
    PlainSerializer,
    PlainValidator,
    SecretStr,
)

from orchestrator.checking.field_checks import mistakes
from orchestrator.definition import Event
from orchestrator.definition.codec import decode, encode, encode_as, make_strict
from orchestrator.exceptions import InvalidMessage
from tests.services.cases import cases


class Red(StrEnum):
    RED = "red"


class Rot(StrEnum):
    RED = "red"


class Size(IntEnum):
    SMALL = 1


class Shape(Enum):
    ROUND = "round"


@dataclass(frozen=True)
class Metres:
    length: int


@dataclass(frozen=True)
class Feet:
    length: int


@dataclass(frozen=True)
class Marked(Metres):
    mark: str = ""


@dataclass(frozen=True, eq=False)
class Unlike:
    length: int
    note: str = field(default="", compare=False)


class Model(BaseModel):
    length: int


class Further(Model):
    mark: str = ""


@dataclass
class Account:
    """An account with a field of its own making, and with a cache."""

    total: int
    spent: int = field(init=False)
    cache: Any = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        self.spent, self.cache = 0, object()


def spent(amount: int) -> Account:
    account = Account(10)
    account.spent = amount
    return account


@dataclass(frozen=True)
class Order:
    number: int
    state: str = field(init=False, default="new")


make_strict(Order)


class Place(Enum):
    HOME = (0, 0)


class Rate(Enum):
    HALF = Decimal("0.5")


class Level(Enum):
    LOW = 1


class Right(Flag):
    READ = 1


T = TypeVar("T")


class Page(BaseModel, Generic[T]):
    items: list[T]


class Cells(list[int]):
    """Comparing gives a value for each element, as in numerical libraries."""

    def __eq__(self, other: object) -> Any:
        return Undecided()

    __hash__ = None  # as that of lists


class Undecided:
    def __bool__(self) -> bool:
        raise ValueError("the truth of several values is ambiguous")


Row = Annotated[Any, PlainValidator(Cells), PlainSerializer(list)]


class Pair(NamedTuple):
    one: int
    other: int


class Posted(Event):
    lines: list[Metres]


ODD = timezone(timedelta(hours=5, minutes=53, seconds=28))
NAN: Any = Annotated[Decimal, AllowInfNan(True)]
AGAIN = datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1)
MIDNIGHT = datetime(2026, 3, 1)  # noqa: DTZ001  # a field may have either
DAY, ID = date(2026, 3, 1), UUID(int=7)
KEYS = "keys of this dict"
SECONDS = "its offset from UTC has seconds"


@cases(
    "annotation, value, said",
    # unions
    (str | date, "2026-03-01", ""),
    (str | date, DAY, "date would be read back as str"),
    (Decimal | str, Decimal("1.5"), ""),
    (Decimal | str, "nuts", ""),
    (Decimal | str, "1.5", "str would be read back as Decimal"),
    (UUID | str, str(ID), "str would be read back as UUID"),
    (UUID | str, ID, ""),
    (Metres | Feet, Metres(1), ""),
    (Metres | Feet, Feet(1), "Feet would be read back as Metres"),
    (Metres | dict[str, int], {"length": 1}, "dict would be read back as Metres"),
    (Metres | Marked, Marked(1), ""),
    (Red | Rot, Rot.RED, "Rot would be read back as Red"),
    (Shape | str, Shape.ROUND, "Shape would be read back as str"),
    (Red | str, Red.RED, ""),
    (date | datetime, MIDNIGHT, ""),
    (list[int] | tuple[int, ...], (1,), "tuple would be read back as list"),
    (int | float, 1e22, ""),
    (int | float, 1e23, "float would be read back as int"),
    (list[int | float], [1e300], "0: float would be read back as int"),
    (float, 1e23, ""),
    (Literal[1] | bool, True, "it would be read back as another value"),
    (Literal[1] | bool, 1, ""),
    (set[Literal[1] | bool], {True}, "it would be read back as another value"),
    (int | bool, True, ""),
    # fields that are not given when an instance is made
    (Account, Account(10), ""),
    (Account, spent(7), "spent: it would be read back as another value"),
    (list[Account], [spent(7)], "0.spent: it would be read back"),
    # subclasses
    (Metres, Marked(1, "x"), "Marked would be read back as Metres"),
    (dict[str, list[Metres]], {"a": [Marked(1)]}, "a.0: Marked would be read back"),
    (Model, Further(length=1), "Further would be read back as Model"),
    (Model, Model(length=1), ""),
    (Unlike, Unlike(1, "x"), ""),
    (str, Red.RED, ""),
    (int, Size.SMALL, ""),
    # keys
    (dict[int, str], {1: "a", 2: "b"}, ""),
    (dict[bool, int], {True: 1}, ""),
    (dict[Size, int], {Size.SMALL: 1}, ""),
    (dict[date, int], {DAY: 1}, ""),
    (dict[str, int], {Red.RED: 1}, ""),
    (dict[str | int, int], {1: 1, "1": 2}, KEYS),
    (dict[str | None, int], {None: 1}, KEYS),
    (dict[Any, int], {1: 1}, KEYS),
    (dict[str, Any], {"a": {DAY: 1}}, f"a: {KEYS}"),
    # moments
    (datetime, datetime(2026, 3, 1, tzinfo=ODD), SECONDS),
    (list[time], [time(1, tzinfo=ODD)], f"0: {SECONDS}"),
    (time, time(9, tzinfo=ZoneInfo("Europe/Berlin")), "its zone has no offset"),
    (list[time], [time(9, tzinfo=ZoneInfo("Europe/Berlin"))], "0: its zone has no"),
    (time, time(9, tzinfo=UTC), ""),
    (time, time(9), ""),
    (datetime, datetime(2026, 3, 1, tzinfo=UTC), ""),
    (datetime, AGAIN, ""),
    (set[Metres], {Marked(1)}, "Marked would be read back as Metres"),
    (deque[Metres], deque([Marked(1)]), "0: Marked would be read back as Metres"),
    (Page[int], Page(items=[1]), ""),
    (Page[Metres], Page(items=[Marked(1)]), "items.0: Marked would be read back"),
    # untyped data
    (Any, {"a": [1, 2.5, None, "x", True]}, ""),
    (Any, {"a": Red.RED}, ""),
    (Any, [(1, 2)], "0: tuple would be read back as list"),
    (Any, {"a": {1, 2}}, "a: set would be read back as list"),
    (Any, {"a": DAY}, "a: date would be read back as str"),
    (Any, Decimal("1.5"), "Decimal would be read back as str"),
    (Any, Pair(1, 2), "Pair would be read back as list"),
    (dict, {"a": Metres(1)}, "a: Metres would be read back as dict"),
    # the rest
    (float, 1, ""),
    (float, 2**53 + 1, "int would be read back as float"),
    (SecretStr, SecretStr("hush"), "it would be read back as another value"),
)
def test_what_is_written_comes_back_or_is_refused(
    annotation: Any, value: Any, said: str
) -> None:
    found = outcome(annotation, value)

    assert found.startswith(said)
    assert bool(found) == bool(said)


def outcome(annotation: Any, value: Any) -> str:
    """Return why a value is not written; "" if it comes back as it was."""
    try:
        body = encode_as(annotation, value)
    except InvalidMessage as refused:
        return str(refused)
    back = decode(annotation, body)
    same = back == value or str(back) == str(value)
    return "" if same else f"changed in silence to {back!r}"


NEVER_EQUAL: list[tuple[Any, Any]] = [
    (set[datetime], {AGAIN, datetime(2026, 3, 1, tzinfo=UTC)}),
    (dict[datetime, int], {AGAIN: 1, datetime(2026, 3, 1, tzinfo=UTC): 2}),
    (deque[datetime], deque([AGAIN])),
    (OrderedDict[str, datetime], OrderedDict(a=AGAIN)),
    (set[Unlike], {Unlike(1), Unlike(2)}),
    (deque[Unlike], deque([Unlike(1)])),
    (NAN, Decimal("NaN")),
    (Row, Cells([1, 2])),
]


def test_values_are_taken_that_python_never_calls_equal() -> None:
    refused = {}
    for annotation, value in NEVER_EQUAL:
        try:
            decode(annotation, encode_as(annotation, value))
        except Exception as error:  # noqa: BLE001  # whatever it is
            refused[annotation] = error

    assert refused == {}


def test_a_list_stands_for_any_sequence() -> None:
    form: Any = Sequence[int]

    assert decode(form, encode_as(form, (1, 2))) == [1, 2]


def test_what_can_be_read_once_is_taken() -> None:
    form: Any = Iterable[int]

    assert list(decode(form, encode_as(form, iter(range(2))))) == [0, 1]


def test_a_union_is_read_in_its_own_order() -> None:
    either: list[Any] = [Metres | Feet, Feet | Metres, list[Feet | Metres]]

    assert decode(either[0], {"length": 1}) == Metres(1)
    assert decode(either[1], {"length": 1}) == Feet(1)
    assert decode(either[2], [{"length": 1}]) == [Feet(1)]


def test_the_value_itself_is_not_changed() -> None:
    given = {"a": [1e22, -0.0]}
    encode_as(Any, given)

    assert repr(given) == "{'a': [1e+22, -0.0]}"


def test_a_message_with_the_subclass_of_a_field_is_refused_with_its_path() -> None:
    with pytest.raises(InvalidMessage, match=r"^Posted: lines\.1: Marked would be"):
        encode(Posted([Metres(1), Marked(1, "x")]))


def test_what_earlier_releases_stored_is_read_as_before() -> None:
    either: list[Any] = [str | date, Metres | Feet]

    assert decode(either[0], "2026-03-01") == "2026-03-01"
    assert decode(either[1], {"length": 1}) == Metres(1)
    assert decode(datetime, "2026-03-01T00:00:00+05:53").minute == 0


@cases(
    "annotation, count",
    (str | date, 1),
    (list[str | date] | None, 1),
    (Metres | Feet, 1),
    (dict[str | None, int], 1),
    (dict[str, Metres | Feet], 1),
    (Red | Rot, 1),
    (Shape | str, 1),
    (list[int] | tuple[int, ...], 1),
    (Decimal | str, 0),
    (UUID | str | None, 0),
    (date | datetime, 0),
    (int | float | bool, 0),
    (Red | str, 0),
    (Metres | Marked, 0),
    (dict[int, str], 0),
    (dict[str, Any], 0),
    (Any, 0),
    # what is written, and never read
    (Order, 1),
    (Place, 1),
    (Rate, 1),
    (Literal[b"x"], 1),
    (dict[Literal[1, 2], str], 1),
    (dict[tuple[int, int], str], 1),
    (dict[frozenset[int], str], 1),
    (dict[Level, str], 1),
    (dict[Right, str], 1),
    (dict[str, list[Place]], 1),
    (Level, 0),
    (Right, 0),
    (Account, 0),
    (dict[Size, str], 0),
    (dict[Literal["a"], str], 0),
)
def test_the_check_tells_types_of_which_no_value_comes_back(
    annotation: Any, count: int
) -> None:
    assert len(list(mistakes(annotation))) == count


def test_the_check_takes_an_alias_that_names_itself() -> None:
    alias = SimpleNamespace()
    alias.__value__ = dict[str, alias] | list[alias] | str  # type: ignore[valid-type]  # as `type` statements make it

    assert list(mistakes(alias)) == []
