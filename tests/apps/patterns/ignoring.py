"""Workflows that say what becomes of events that none of their steps takes."""

from dataclasses import dataclass

from orchestrator.definition import (
    Event,
    Workflow,
    ask,
    fork,
    ignore,
    join,
    park,
    reject,
    repeat,
    step,
    stored,
    then,
    wait,
)
from tests.apps.compensation.steps import Answer


class OfferCame(Event):
    offer: str
    by: str


class OfferWithdrawn(Event):
    offer: str


class OfferSigned(Event):
    offer: str
    form: str


@dataclass(frozen=True)
class Offer:
    offer: str


def invite(offer: str) -> str:
    return offer


def check(offer: str) -> str:
    return offer


def is_good(signed: OfferSigned) -> bool:
    return signed.form == "good"


_first = wait(OfferCame, "first", by="A")
_second = wait(OfferCame, "second", by="B")
_approve = ask("approve", Answer)
_race = (
    fork(invite, into=[_first, _second]),
    join(_first, _second, into=check, wait_for="any", rest="cancel"),
    then(check, _approve),
)


class Race(Workflow):
    """Takes the first of two offers; the other one may come late."""

    Input, correlation = Offer, "offer"
    flow = (*_race, ignore(OfferCame))


class Loud(Workflow):
    """Takes the first of two offers; people are told of the other one."""

    Input, correlation = Offer, "offer"
    flow = _race


class Rounds(Workflow):
    """Asks for a signature until the form is good."""

    Input, correlation = Offer, "offer"
    _signed = wait(OfferSigned, "signed")
    _noted = ask("noted", Answer)
    flow = (
        repeat(_noted, _signed, until=is_good, at_most=3, then=_approve),
        ignore(OfferSigned),
    )


def look(offer: str) -> str:
    return offer


class Together(Workflow):
    """The failure of one branch cancels the wait of the other one."""

    Input, correlation = Offer, "offer"
    _mine = wait(OfferCame, "mine")
    flow = (
        fork(invite, into=[step(look, retries=0), _mine]),
        join(look, _mine, into=check, on_failure="fail_fast"),
        ignore(OfferCame),
    )


class Guarded(Workflow):
    """Takes its own good form, and ignores every other one that comes meanwhile."""

    Input, correlation = Offer, "offer"
    flow = (
        then(
            ask("begin", Answer),
            wait(OfferSigned, "signed", is_good, otherwise=ignore),
            _approve,
        ),
    )


class Strict(Workflow):
    """Rejects a form that is not good."""

    Input, correlation = Offer, "offer"
    flow = (then(wait(OfferSigned, "signed", is_good, otherwise=reject), _approve),)


class Keeping(Workflow):
    """Keeps a form that is not good, though forms are ignored once no step waits for them."""

    Input, correlation = Offer, "offer"
    flow = (
        then(wait(OfferSigned, "signed", form="good", otherwise=park), _approve),
        ignore(OfferSigned),
    )


class Both(Workflow):
    """Waits for a good and for a bad form; the one rejects and the other ignores what neither takes."""

    Input, correlation = Offer, "offer"
    flow = (
        wait(OfferSigned, "good", form="good", otherwise=reject),
        wait(OfferSigned, "bad", form="bad", otherwise=ignore),
    )


class Made(Workflow):
    """A graph that is made from the input, with a row that ignores."""

    Input, correlation = Offer, "offer"
    waits_for = (OfferCame,)

    @staticmethod
    def flow(input: Offer) -> list[object]:
        mine = wait(OfferCame, "mine", offer=stored("offer"))
        return [then(mine, _approve), ignore(OfferCame)]


ALL = (Race, Loud, Rounds, Together, Guarded, Strict, Keeping, Both, Made)
