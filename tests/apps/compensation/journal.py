"""What the steps have done, in this process, and what is wrong with them now."""

done: list[str] = []
"""What was done, in order."""
undone: list[str] = []
faults: dict[str, Exception] = {}
"""What a step raises instead of doing its work."""


def do(name: str, entry: str = "", where: list[str] = done) -> None:
    """Do a step's work, unless something is wrong with it."""
    if name in faults:
        raise faults[name]
    where.append(entry or name)


def undo(name: str, entry: str = "") -> None:
    """Undo a step's work, unless something is wrong with that."""
    do(name, entry, undone)


def forget() -> None:
    """Begin with an empty journal and nothing wrong."""
    done.clear()
    undone.clear()
    faults.clear()
