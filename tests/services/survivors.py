"""Mutants of `tests.mutation_run` that no test can kill, each with the reason: it costs more, or changes nothing.

The table names at most a tenth of the mutants that are played.
"""

SURVIVORS = {
    "events/runner.py EventGroup.learn: self._known[instance.pk] = instance → nothing": (
        "It costs more: later events of the process are delivered singly."
    ),
}
