"""The shapes in a picture that Graphviz does not draw: outlines of parts, and marks on parts and lines.

Each kind of part has an outline of its own, which shows it without colour. Marks (status, badges, bars) are always
there; CSS classes show them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

ICONS = {
    "waiting": "M8 2.2a5.8 5.8 0 1 0 0 11.6a5.8 5.8 0 1 0 0-11.6M8 4.8V8l2.3 1.5",
    "running": "M5 3.2v9.6L12.8 8z",
    "retrying": "M13 8a5 5 0 1 1-1.5-3.6L13 5.8M13 2.6v3.2H9.8",
    "failed": "M5.5 2h5L14 5.5v5L10.5 14h-5L2 10.5v-5zM8 5v3.5M8 10.9v.2",
    "done": "M3 8.5l3.3 3.3L13 4.8",
    "skipped": "M3.5 4l4 4-4 4M8.5 4l4 4-4 4",
    "cancelled": "M4 4l8 8M12 4l-8 8",
    "paused": "M5.5 3.5v9M10.5 3.5v9",
    "ready": "M8 3v10M3 8h10",
    "parked": "M2.5 9l1.7-5.5h7.6L13.5 9v3.5h-11zM2.5 9h3l1 1.7h3l1-1.7h3",
    "escalated": "M8 13V3M3.8 7.2L8 3l4.2 4.2",
    "search": "M7 2.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9M10.3 10.3L14 14",
    "not_taken": "M3.5 8h1M7.5 8h1M11.5 8h1",
    "handled": "M10.5 2.6a3.4 3.4 0 0 0-3.1 4.7L2.6 12l1.4 1.4 4.8-4.7a3.4 3.4 0 0 0 4.5-4l-2 2-1.9-.5-.5-1.9z",
    "undone": "M8.5 4v8L3 8zM13.5 4v8L8 8z",
    "undo": "M8.5 4v8L3 8zM13.5 4v8L8 8z",
    "bolt": "M9 1.8L3.8 9H8l-1 5.2L12.2 7H8z",
    "map": "M4 3v10M8 3v10M12 3v10",
    "run": "M2.5 2.5h11v11h-11zM8 5v6M5 8h6",
    "group": "M2.5 5h11M2.5 8h11M2.5 11h11",
    "wait": "M2 4h12v8.5H2zM2 4.5l6 4.5 6-4.5",
    "ask": "M8 2.5a2.6 2.6 0 1 0 0 5.2a2.6 2.6 0 1 0 0-5.2M2.8 13.5c.4-3 2.4-4.3 5.2-4.3s4.8 1.3 5.2 4.3",
    "sleep": "M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0-11M8 5v3.2l2.4 1.6",
    "step": "M3 4.5h10v7H3z",
    "child": "M3 3v6h8M8.5 6l3 3-3 3",
    "restart": "M3 3v4h4M3.3 7A5 5 0 1 1 3.6 10.5M8 5.5v5l3.5-2.5z",
    "person": "M8 2.5a2.6 2.6 0 1 0 0 5.2a2.6 2.6 0 1 0 0-5.2M2.8 13.5c.4-3 2.4-4.3 5.2-4.3s4.8 1.3 5.2 4.3",
    "locked": "M4 7.5h8v6H4zM5.5 7.5V5.3a2.5 2.5 0 0 1 5 0v2.2",
    "arrow": "M2.5 8h11M9.5 4l4 4-4 4",
    "external": "M6 3H3v10h10v-3M9 3h4v4M13 3L7 9",
}
"""Icons as stroked paths on a 16 by 16 grid; chips and parts show a status by one, besides its colour."""


@dataclass(frozen=True)
class Box:
    """The place of a node."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.bottom - self.top

    @property
    def centre(self) -> float:
        return (self.left + self.right) / 2

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2


ROUND = 7.0
BEHIND = 4.0
"""The distance between the sheets of a stack."""


def outline(shape: str, box: Box) -> Iterator[ET.Element]:
    """Yield the outline of a part, its body first."""
    yield from OUTLINES.get(shape, _plain)(box)


def icon_path(kind: str, name: str, x: float, y: float, scale: float = 1) -> ET.Element:
    """Return an icon around a point.

    Args:
        kind: its CSS classes.
        name: one of `ICONS`.
        x, y: the point.
        scale: its size, in 16 units of the picture.
    """
    half = 8 * scale
    place = f"translate({x - half:g} {y - half:g}) scale({scale:g})"
    return ET.Element("path", {"class": kind, "d": ICONS[name], "transform": place})


def _rounded(box: Box, radius: float) -> ET.Element:
    across, down = box.width - 2 * radius, box.height - 2 * radius
    corner = f"a{radius:.2f} {radius:.2f} 0 0 1"
    d = (
        f"M{box.left + radius:.2f} {box.top:.2f}h{across:.2f}{corner} {radius:.2f} {radius:.2f}"
        f"v{down:.2f}{corner} {-radius:.2f} {radius:.2f}h{-across:.2f}"
        f"{corner} {-radius:.2f} {-radius:.2f}v{-down:.2f}{corner} {radius:.2f} {-radius:.2f}z"
    )
    return ET.Element("path", {"d": d})


def _plain(box: Box) -> Iterator[ET.Element]:
    yield _rounded(box, ROUND)


def _pill(box: Box) -> Iterator[ET.Element]:
    yield _rounded(box, min(box.height, box.width) / 2)


def _stack(box: Box) -> Iterator[ET.Element]:
    """Yield a sheet with two more behind it."""
    yield _rounded(box, 3)
    for number in (1, 2):
        out = BEHIND * number
        points = [
            (box.right + out - BEHIND, box.top + out),
            (box.right + out, box.top + out),
            (box.right + out, box.bottom + out),
            (box.left + out, box.bottom + out),
            (box.left + out, box.bottom + out - BEHIND),
        ]
        yield _through(points, "behind")


def _framed(box: Box) -> Iterator[ET.Element]:
    """Yield a box with a second line at each side: a process of its own."""
    yield _rounded(box, 3)
    for x in (box.left + 6, box.right - 6):
        yield _through([(x, box.top), (x, box.bottom)], "rim")


def _folded(box: Box) -> Iterator[ET.Element]:
    """Yield a sheet with another behind it, for a group of steps."""
    yield _rounded(box, ROUND)
    points = [(box.left + 8, box.bottom + BEHIND), (box.right - 8, box.bottom + BEHIND)]
    yield _through(points, "behind")


def _diamond(sign: str) -> Callable[[Box], Iterator[ET.Element]]:
    def draw(box: Box) -> Iterator[ET.Element]:
        x, y, half = box.centre, box.middle, box.width / 2
        d = f"M{x:.2f} {y - half:.2f}l{half:.2f} {half:.2f}l{-half:.2f} {half:.2f}l{-half:.2f} {-half:.2f}z"
        yield ET.Element("path", {"d": d})
        place = f"translate({x:.2f} {y:.2f})"
        yield ET.Element("path", {"class": "glyph", "d": sign, "transform": place})

    return draw


def _dot(box: Box) -> Iterator[ET.Element]:
    yield _circle(box, box.width / 2)


def _ring(box: Box) -> Iterator[ET.Element]:
    yield from _dot(box)
    yield _circle(box, box.width / 2 - 4.5)


def _circle(box: Box, radius: float) -> ET.Element:
    at = {"cx": f"{box.centre:.2f}", "cy": f"{box.middle:.2f}", "r": f"{radius:.2f}"}
    return ET.Element("circle", at)


def _through(points: list[tuple[float, float]], name: str) -> ET.Element:
    text = " ".join(f"{x:.2f},{y:.2f}" for x, y in points)
    return ET.Element("polyline", {"class": name, "points": text})


OUTLINES: dict[str, Callable[[Box], Iterator[ET.Element]]] = {
    "map": _stack,
    "wait": _pill,
    "ask": _pill,
    "sleep": _pill,
    "run": _framed,
    "group": _folded,
    "start": _dot,
    "end": _ring,
    "all": _diamond("M-6 0h12M0-6v12"),
    "one": _diamond("M-4.5-4.5l9 9M4.5-4.5l-9 9"),
    "some": _diamond("M0-5.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0-11z"),
}


# Marks

MARKS = (
    "waiting",
    "running",
    "retrying",
    "failed",
    "done",
    "skipped",
    "cancelled",
    "ready",
    "paused",
    "not_taken",
    "handled",
    "undone",
)


def mark(x: float, y: float) -> ET.Element:
    """Return a place for the icon of a step's status, on the corner of its node."""
    group = ET.Element(
        "g", {"class": "mark", "transform": f"translate({x + 3:.2f} {y + 3:.2f})"}
    )
    ET.SubElement(group, "circle", {"r": "9.5"})
    group.extend(icon_path(f"i i-{name}", name, 0, 0, 0.75) for name in MARKS)
    return group


def badge(name: str, x: float, y: float) -> ET.Element:
    """Return a place for a number, on the corner of a node."""
    group = ET.Element(
        "g",
        {
            "class": f"badge {name}",
            "transform": f"translate({x - 2:.2f} {y + 2:.2f})",
            "data-len": "0",
        },
    )
    ET.SubElement(group, "rect", {"y": "-9.5", "height": "19", "rx": "9.5"})
    ET.SubElement(group, "text", {"y": "3.8", "text-anchor": "middle"})
    return group


def corner_badges(box: Box) -> Iterator[ET.Element]:
    """Yield places for numbers: trouble, count, failed elements, and progress or attempt."""
    yield badge("bad", box.left, box.top)
    yield badge("count", box.right, box.top)
    yield badge("lost", box.left + 14, box.bottom)
    yield badge("note", box.right - 12, box.bottom)


def bar(box: Box) -> ET.Element:
    """Return a place for progress along the lower edge of a node: the done part, then the failed part."""
    across = box.width - 14
    group = ET.Element("g", {"class": "bar", "data-across": f"{across:.2f}"})
    group.set("transform", f"translate({box.left + 7:.2f} {box.bottom - 6:.2f})")
    for name, length in (("track", across), ("part", 0), ("lost", 0)):
        size = {"width": f"{length:.2f}", "height": "4", "rx": "2"}
        ET.SubElement(group, "rect", {"class": name, **size})
    return group


def loop_line(
    box: Box, texts: Sequence[ET.Element], place: int, number: int
) -> Iterator[ET.Element]:
    """Yield one of several lines that lead from a box to itself, at its right: to the texts of its label, and back.

    Args:
        box: the source and target.
        texts: the texts of its label, at the right of the box.
        place: its place among these lines, counted from 0.
        number: the number of these lines.
    """
    left = min(float(text.get("x", "0")) for text in texts) - 2
    lines = [float(text.get("y", "0")) - 4 for text in texts]
    middle = (lines[0] + lines[-1]) / 2
    step = (box.bottom - box.top) * 0.8 / number
    begins = box.top + (box.bottom - box.top) * 0.1 + step * (place + 0.3)
    ends = begins + step * 0.4
    tip, turn = box.right + 8, min(5.0, max(step / 2, 3.0))
    width, end = left - box.right, left - turn
    out, back = box.right + width * 0.5, left - width * 0.5
    above, below, round_ = middle - turn, middle + turn, end + turn * 4 / 3
    yield ET.Element(
        "path",
        {
            "d": f"M{box.right:.2f},{begins:.2f}"
            f"C{out:.2f},{begins:.2f} {back:.2f},{above:.2f} {end:.2f},{above:.2f}"
            f"C{round_:.2f},{above:.2f} {round_:.2f},{below:.2f} {end:.2f},{below:.2f}"
            f"C{back:.2f},{below:.2f} {out:.2f},{ends:.2f} {tip:.2f},{ends:.2f}"
        },
    )
    points = [(tip, ends - 2.8), (box.right, ends), (tip, ends + 2.8)]
    corners = " ".join(f"{x:.2f},{y:.2f}" for x, y in [*points, points[0]])
    yield ET.Element("polygon", {"points": corners})
