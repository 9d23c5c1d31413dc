"""The outlines of a workflow's parts. Each kind has a shape of its own, so that none is told by colour alone."""

from collections.abc import Callable, Iterator
from xml.etree import ElementTree as ET

from monitoring.diagrams.box import Box
from monitoring.icons import ICONS

ROUND = 7.0
BEHIND = 4.0
"""How far the sheets of a stack stand out."""


def outline(shape: str, box: Box) -> Iterator[ET.Element]:
    """The outline of a part, its body first."""
    yield from OUTLINES.get(shape, _plain)(box)


def glyph(name: str, x: float, y: float) -> ET.Element:
    """The icon of a kind of step, around a point."""
    place = f"translate({x - 8:.2f} {y - 8:.2f})"
    return ET.Element("path", {"class": "glyph", "d": ICONS[name], "transform": place})


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
    """A sheet with two more behind it."""
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
    """A box with a second line at each side: a process of its own."""
    yield _rounded(box, 3)
    for x in (box.left + 6, box.right - 6):
        yield _through([(x, box.top), (x, box.bottom)], "rim")


def _folded(box: Box) -> Iterator[ET.Element]:
    """Several steps: a sheet with another behind it."""
    yield _rounded(box, ROUND)
    points = [
        (box.left + 8, box.bottom + BEHIND),
        (box.right - 8, box.bottom + BEHIND),
    ]
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
    yield _circle(box, box.width / 2)
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
    "run": _framed,
    "group": _folded,
    "start": _dot,
    "end": _ring,
    "all": _diamond("M-6 0h12M0-6v12"),
    "one": _diamond("M-4.5-4.5l9 9M4.5-4.5l-9 9"),
    "some": _diamond("M0-5.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0-11z"),
}
