"""Mutants of `tests.mutation_run` that no test of it can kill, each with the reason.

One costs more, or changes nothing, or is not reached.

The table names at most a tenth of the mutants that are played.
"""

SURVIVORS = {
    "change/change.py is_independent: instance.finished_at is None → nothing": (
        "It changes nothing: callers ask only about processes with the status of a live one."
    ),
    "change/offering.py is_overtaking: instance.parked > (event.verdict == Verdict.PARKED)"
    " → instance.parked >= (event.verdict == Verdict.PARKED)": (
        "It costs more: one query for each event."
    ),
    "change/workflows/following.py Following._fire: kind=StepKind.JOIN → nothing": (
        "It changes nothing: the join was read in the same change, under the fence of the revision."
    ),
    "change/workflows/starting.py _mark_early_events: expected → nothing": (
        "It costs more: each start with a key writes one statement that finds nothing."
    ),
    "change/workflows/settling.py hold_map: {'owner': ''} → nothing": (
        "It changes nothing: an element that is ready has no owner."
    ),
    "change/workflows/workflow_change.py WorkflowChange._given_up: {'finished_at': None} → nothing": (
        "It changes nothing: the visit was read as open, under the fence of the revision."
    ),
    "events/runner.py EventGroup._read: self._known.clear() → nothing": (
        "It costs more: an event whose process alone is known is decided twice."
    ),
    "events/runner.py EventGroup.learn: self._known[instance.pk] = instance → nothing": (
        "It costs more: later events of the process are delivered singly."
    ),
    "events/runner.py _is_pure: handler is not None → nothing": (
        "It changes nothing: a missing handler raises, and the event is delivered singly."
    ),
    "steps/step_calls.py StepCall.store_results: (one := call.held(result)) → nothing": (
        "Calls are stored together by workers, whose tests start programs: these have no mutant."
    ),
    "work/claims.py _asked: vendor == 'postgresql' → vendor != 'postgresql'": (
        "It is not reached: the statement is made once for all tests, before the mutant."
    ),
    "work/step_failures.py _stop: run.kind == StepKind.ITEM → nothing": (
        "It changes nothing: of a map only its elements and compensations are claimed."
    ),
}
