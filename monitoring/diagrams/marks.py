"""The small parts drawn on nodes and edges: status mark, badges, clock. They are always there; classes show them."""

from collections.abc import Iterator
from xml.etree import ElementTree as ET

from monitoring.diagrams.box import Box
from monitoring.icons import ICONS

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
    """A place for the icon of a step's status, on the corner of its node."""
    group = ET.Element(
        "g", {"class": "mark", "transform": f"translate({x + 3:.2f} {y + 3:.2f})"}
    )
    ET.SubElement(group, "circle", {"r": "9.5"})
    for name in MARKS:
        place = {
            "class": f"i i-{name}",
            "d": ICONS[name],
            "transform": "translate(-6 -6) scale(.75)",
        }
        ET.SubElement(group, "path", place)
    return group


def badge(name: str, x: float, y: float) -> ET.Element:
    """A place for a number, on the corner of a node."""
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
    """Places for numbers: trouble, count, what failed of many, and how far it is or which attempt it is."""
    yield badge("bad", box.left, box.top)
    yield badge("count", box.right, box.top)
    yield badge("lost", box.left + 14, box.bottom)
    yield badge("note", box.right - 12, box.bottom)


def clock(x: float, y: float, name: str = "waiting") -> ET.Element:
    """The sign of a deadline, or of another kind of edge, before the first line of its label."""
    place = f"translate({x:.2f} {y - 9.2:.2f}) scale(.7)"
    return ET.Element("path", {"class": "clock", "d": ICONS[name], "transform": place})


def sign(name: str, x: float, y: float) -> ET.Element:
    """The sign of a kind of step, at its lower edge."""
    place = f"translate({x - 6:.2f} {y - 6:.2f}) scale(.75)"
    kind = f"glyph sign of-{name}"
    return ET.Element("path", {"class": kind, "d": ICONS[name], "transform": place})


def bar(box: Box) -> ET.Element:
    """A place for progress along the lower edge of a node: what is done, then what failed."""
    across = box.width - 14
    group = ET.Element("g", {"class": "bar", "data-across": f"{across:.2f}"})
    group.set("transform", f"translate({box.left + 7:.2f} {box.bottom - 6:.2f})")
    for name, length in (("track", across), ("part", 0), ("lost", 0)):
        size = {"width": f"{length:.2f}", "height": "4", "rx": "2"}
        ET.SubElement(group, "rect", {"class": name, **size})
    return group
