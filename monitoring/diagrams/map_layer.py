"""The layer of a definition's map above its picture: badges with numbers, each a link, and undeclared moves.

Only maps have the layer, so pictures of processes stay as they are.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import quote
from xml.etree import ElementTree as ET

from monitoring.diagrams.shapes import Box, badge
from monitoring.diagrams.sketch import Part, Sketch

Way = tuple[str, str]
"""A move from one part to another, by their ids."""


def add_badges(
    canvas: ET.Element,
    sketch: Sketch,
    boxes: Mapping[str, Box],
    links: Mapping[str, str] | None = None,
    query: str = "",
) -> None:
    """Add a place for each number of each step.

    Args:
        canvas: the root group of the picture.
        sketch: the sketch of the picture.
        boxes: the places of the parts, by their ids.
        links: further parameters of the link of each badge, by its name; without them badges are no links.
        query: parameters that every link keeps.
    """
    for part in sketch.steps():
        if part.id in boxes:
            group = ET.SubElement(canvas, "g", {"data-badges": part.id})
            for name, drawn in _badges(boxes[part.id]):
                said = (links or {}).get(name)
                if said is None or part.shape == "group":
                    group.append(drawn)
                else:
                    group.append(_link_badge(drawn, part, said, query))


def add_ways(canvas: ET.Element, boxes: Mapping[str, Box], ways: Sequence[Way]) -> None:
    """Add undeclared moves: a dashed curve from the top of one step to the top of another."""
    for source, target in ways:
        if source in boxes and target in boxes:
            group = ET.SubElement(canvas, "g", {"class": "way"})
            title = ET.SubElement(group, "title")
            title.text = f"{source} → {target}"
            group.extend(_curve(boxes[source], boxes[target]))


def add_caption(picture: ET.Element, lines: Iterable[str]) -> None:
    """Add lines of text below the picture, which is made as much higher."""
    left, top, width, height = (
        float(one) for one in picture.get("viewBox", "0 0 1 1").split()
    )
    below, widest = top + height, width
    for line in lines:
        below += LINE
        place = {"class": "caption", "x": f"{left + 12:.2f}", "y": f"{below:.2f}"}
        ET.SubElement(picture, "text", place).text = line
        widest = max(widest, len(line) * LETTER + 24)
    higher = below - top + LINE / 2
    picture.set("viewBox", f"{left:.2f} {top:.2f} {widest:.2f} {higher:.2f}")
    for name, was, now in (("width", width, widest), ("height", height, higher)):
        picture.set(name, f"{float(picture.get(name, '0')) * now / (was or 1):.0f}")


LINE = 18.0
LETTER = 6.6
"""Height of a line of the caption, and about the width of a letter in it."""


def _badges(box: Box) -> Iterator[tuple[str, ET.Element]]:
    """Yield the badges of a step: its work in the corners, and the number that the map compares on the upper edge."""
    at = {
        "failed": (box.left, box.top),
        "active": (box.right, box.top),
        "waiting": (box.right, box.bottom),
        "finished": (box.left, box.bottom),
        "value": (box.right - 2, box.top - 7),
    }
    for name, place in at.items():
        drawn = badge(name, *place)
        drawn.insert(0, ET.Element("title"))
        yield name, drawn


def _link_badge(drawn: ET.Element, part: Part, said: str, query: str) -> ET.Element:
    kept = f"&{query}" if query else ""
    anchor = ET.Element("a", {"href": f"?step={quote(part.id)}&{said}{kept}"})
    anchor.append(drawn)
    return anchor


def _curve(source: Box, target: Box) -> Iterator[ET.Element]:
    if source == target:
        begins, ends = (source.left + 12, source.top), (source.right - 12, source.top)
    else:
        begins, ends = (source.centre + 6, source.top), (target.centre - 6, target.top)
    high = min(begins[1], ends[1]) - 26
    d = "M{:.2f},{:.2f}C{:.2f},{:.2f} {:.2f},{:.2f} {:.2f},{:.2f}".format(
        *begins, begins[0], high, ends[0], high, *ends
    )
    yield ET.Element("path", {"d": d})
    x, y = ends
    points = [(x - 3.5, y - 8), (x, y), (x + 3.5, y - 8), (x - 3.5, y - 8)]
    corners = " ".join(f"{a:.2f},{b:.2f}" for a, b in points)
    yield ET.Element("polygon", {"points": corners})
