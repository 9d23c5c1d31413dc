"""Clothes are mended. How they are broken decides on the way; no two ways lead to the same end."""

import gc
import json
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.definition import Workflow, ask, catch, fork, join, step, then


class Stained(ValueError):
    """Has the name of another module's error."""


class Kept(StrEnum):
    YES = "yes"


@dataclass(frozen=True)
class Clothes:
    how: str


def sew(how: str) -> str:
    """Fails, in every way that a name alone does not tell."""
    if how == "of the function":

        class Torn(ValueError):
            """Known nowhere else, and another module has one of that name."""

        raise Torn(how)
    if how == "of another module":
        raise Stained(how)
    if how == "below its base":
        json.loads("{")
    if how == "gone":
        raise type("Frayed", (ValueError,), {})(how)
    return how


def tear() -> str:
    raise KeyError("torn")


def buy() -> str:
    return "a new one"


def patch() -> str:
    gc.collect()  # the class of an error that is gone is not found again
    return "a patch"


def wear() -> str:
    return "worn"


hang, fetch, keep = (ask(name, Kept) for name in ("hang", "fetch", "keep"))


class Mending(Workflow):
    """A step whose failure one of two rows catches."""

    Input = Clothes
    flow = (
        step(sew, retries=0),
        catch(sew, error=LookupError, to=buy),
        catch(sew, error=ValueError, to=patch),
        then(patch, keep, wear),
    )


def wash() -> str:
    return "clean"


def iron() -> str:
    return "smooth"


class Hurry(Workflow):
    """A failure is caught by a step that nobody waits for any more: the first branch was enough."""

    Input = Clothes
    flow = (
        fork(iron, into=[hang, fetch]),
        step(sew, retries=0),
        then(fetch, sew, wash),
        catch(sew, error=ValueError, to=patch),
        join(hang, patch, into=wear, wait_for="any", rest="cancel"),
        then(wear, keep),
    )


class Rush(Workflow):
    """Two steps are caught together; one fails with another error first, while the other waits to be hung up."""

    Input = Clothes
    flow = (
        fork(step(wash, "soak"), into=[step(sew, retries=0), hang]),
        then(hang, step(tear, retries=0)),
        catch(sew, tear, error=KeyError, to=buy),
    )
