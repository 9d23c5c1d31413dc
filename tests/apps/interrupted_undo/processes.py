"""The workflows."""

from orchestrator.definition import Workflow, each, fork, join, step, then, undo
from tests.apps.interrupted_undo import crew
from tests.apps.interrupted_undo import traced_steps as v


class Overrun(Workflow):
    """A step that takes longer than it may, and is not tried again."""

    flow = (step(crew.board, timeout=3, retries=0),)


class Endless(Workflow):
    """A step that has all the time in the world."""

    flow = (step(crew.board, retries=0),)


berth, insure, sail = (
    v.patient(function, transactional=True) for function in (v.berth, v.insure, v.sail)
)
load, fuel, stow = (v.patient(function) for function in (v.load, v.fuel, v.stow))


class Voyage(Workflow):
    """Sinks at its very end; everything before is taken back."""

    Input = v.Cargo
    flow = (
        fork(berth, into=[load, fuel]),
        join(load, fuel, into=insure),
        each(insure, over="", do=stow, into=sail),
        then(sail, v.patient(v.sink)),
        undo(berth, by=v.free_berth),
        undo(load, by=v.unload),
        undo(fuel, by=v.drain_fuel),
        undo(insure, by=v.end_insurance),
        undo(stow, by=v.unstow),
        undo(sail, by=v.call_back),
    )
