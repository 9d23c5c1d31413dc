"""How a diagram looks now: what of it is painted."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class NodeState:
    """How a node looks now: status classes, texts at its corners (empty: none), progress, what its tooltip says.

    `part` and `lost` are shares between 0 and 1 of what is done and what failed; None shows no bar.
    """

    classes: tuple[str, ...] = ()
    count: str = ""
    bad: str = ""
    title: str = ""
    note: str = ""
    failed: str = ""
    part: float | None = None
    lost: float = 0.0

    @property
    def badges(self) -> dict[str, str]:
        """The text of each badge by the badge's class."""
        return {
            "count": self.count,
            "bad": self.bad,
            "note": self.note,
            "lost": self.failed,
        }

    def to_json(self) -> dict[str, object]:
        said: dict[str, object] = {
            "classes": self.classes,
            "title": self.title,
            **{name: text for name, text in self.badges.items() if text},
        }
        if self.part is not None:
            said["bar"] = [round(self.part, 4), round(self.lost, 4)]
        return said


@dataclass(frozen=True)
class DiagramState:
    """How a diagram looks now, by node id and edge id; also sent to the page as JSON."""

    nodes: Mapping[str, NodeState] = field(default_factory=dict)
    edges: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        return {
            "nodes": {key: node.to_json() for key, node in self.nodes.items()},
            "edges": dict(self.edges),
        }
