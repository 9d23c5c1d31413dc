"""Graphviz's layout of a sketch as a picture for a page, painted by CSS classes alone.

The picture is a new tree of allowed elements and attributes. Process managers have the outlines that Graphviz drew, and
workflows the outlines of `shapes` at the places that Graphviz found.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from xml.etree import ElementTree as ET

from monitoring.diagrams import words
from monitoring.diagrams.dot import (
    CLOCK_ROOM,
    ICON_ROOM,
    WITH_ICON,
    WITH_SIGN,
    part_lines,
)
from monitoring.diagrams.shapes import (
    Box,
    badge,
    bar,
    corner_badges,
    icon_path,
    loop_line,
    mark,
    outline,
)
from monitoring.diagrams.sketch import Line, Part, Sketch

SVG = "{http://www.w3.org/2000/svg}"
ALLOWED = {
    "path": ("d",),
    "polygon": ("points",),
    "polyline": ("points",),
    "ellipse": ("cx", "cy", "rx", "ry"),
    "text": ("x", "y", "text-anchor", "font-size"),
}

WITH_CLASS = ("deadline", "error", "repeat", "default")
"""The kinds of lines that have a class of their own."""
SIGNS = {"deadline": "waiting", "error": "bolt", "repeat": "retrying"}
"""The icon before a line's label, by the kind of line."""

SIGN_ROW = 20.0
"""Height that the row of signs at a part's lower edge takes."""


def picture_of(raw: str, sketch: Sketch) -> tuple[ET.Element, dict[str, Box]]:
    """Return a picture of the sketch, and the places of its steps. Ids: steps `n_<slug>`, lines `e_<n>`, gates `g_<n>`.

    Every step has a place for a status mark and for badges, so that nothing moves when they appear.
    """
    source = ET.fromstring(raw)  # noqa: S314  Graphviz wrote it, in a subprocess of this one
    groups = {group.get("id"): group for group in source.iter(f"{SVG}g")}
    picture, canvas = _canvas_of(source)
    drawn_of = {id: groups[name] for id, name in sketch.part_names().items()}
    line_names = sketch.line_names()
    loops = _loops(sketch, groups)
    ends = {part.id: part.label or words.gate_word(part.shape) for part in sketch.parts}
    for index, line in enumerate(sketch.lines):
        drawn = loops.get(index) or list(_shapes(groups[line_names[index]]))
        canvas.append(_line(drawn, line, index, ends))
    names = _slugs_of([part.id for part in sketch.parts])
    draw_step = _workflow_step if sketch.of_workflow else _manager_step
    for part, name in zip(sketch.parts, names, strict=True):
        draw = draw_step if part.is_step else _gate
        canvas.append(draw(drawn_of[part.id], part, name))
    boxes = {part.id: _box_of(drawn_of[part.id]) for part in sketch.steps()}
    return picture, boxes


def _canvas_of(source: ET.Element) -> tuple[ET.Element, ET.Element]:
    """Return an empty picture of the size of Graphviz's, and its root group."""
    picture = ET.Element(
        "svg", {"viewBox": source.get("viewBox", ""), "class": "picture"}
    )
    picture.set("width", _pixels(source.get("width", "")))
    picture.set("height", _pixels(source.get("height", "")))
    found = (g for g in source.iter(f"{SVG}g") if g.get("id") == "graph0")
    drawn = next(found, source)
    place = {"class": "graph", "transform": drawn.get("transform", "")}
    return picture, ET.SubElement(picture, "g", place)


def _slugs_of(ids: Iterable[str]) -> Iterator[str]:
    """Yield a readable id for each node, unique in the picture."""
    used = set[str]()
    for index, given in enumerate(ids):
        name = re.sub(r"\W+", "_", given, flags=re.ASCII).strip("_") or str(index)
        if name in used:
            name = f"{name}_{index}"
        used.add(name)
        yield f"n_{name}"


def _loops(
    sketch: Sketch, groups: Mapping[str | None, ET.Element]
) -> dict[int, list[ET.Element]]:
    """Return the lines from parts to themselves, each with its own label; Graphviz drew these labels as one."""
    part_names, line_names = sketch.part_names(), sketch.line_names()
    found: dict[int, list[ET.Element]] = {}
    for some in sketch.loops():
        box = _box_of(groups[part_names[sketch.lines[some[0]].source]])
        shapes = _shapes(groups[line_names[some[0]]])
        texts = [shape for shape in shapes if shape.tag == "text"]
        for place, index in enumerate(some):
            lines = len(sketch.lines[index].label)
            mine, texts = texts[:lines], texts[lines + 1 :]
            found[index] = [*loop_line(box, mine, place, len(some)), *mine]
    return found


def _line(
    drawn: Sequence[ET.Element], line: Line, index: int, ends: Mapping[str, str]
) -> ET.Element:
    """Return a line; to those who listen it is one image, named by its ends and its label."""
    kind = f"move is-{line.kind}" if line.kind in WITH_CLASS else "move"
    place = {"id": f"e_{index}", "class": kind, "data-edge": line.id, "role": "img"}
    group = ET.Element("g", place)
    said = " ".join(text.strip() for text in line.label) or words.line_word(line.kind)
    title = words.way_text(ends[line.source], ends[line.target], said)
    ET.SubElement(group, "title").text = title
    group.extend(drawn)
    texts = group.findall("text")
    for text in texts:
        text.set("x", f"{float(text.get('x', '0')) + 4:.2f}")
    if line.kind in SIGNS and texts:
        first = texts[0]
        first.text = (first.text or "").replace("\u00a0", " ").strip()
        x, y = float(first.get("x", "0")), float(first.get("y", "0"))
        group.append(icon_path("clock", SIGNS[line.kind], x + 5.6, y - 3.6, 0.7))
        first.set("x", f"{x + 3.2 * len(CLOCK_ROOM):.2f}")
    return group


def _gate(source: ET.Element, part: Part, name: str) -> ET.Element:
    kind = "end" if part.shape in ("start", "end") else "gate"
    place = {
        "id": f"g{name[1:]}",
        "class": f"{kind} of-{part.shape}",
        "data-edge": part.id,
    }
    group = ET.Element("g", place)
    ET.SubElement(group, "title").text = words.gate_word(part.shape) + (
        f": {part.beside}" if part.beside else ""
    )
    group.extend(outline(part.shape, _box_of(source)))
    return group


def _manager_step(source: ET.Element, part: Part, name: str) -> ET.Element:
    """Return a step of a process manager, with the outline that Graphviz drew."""
    group = _group_of(part, name)
    group.extend(_shapes(source))
    for rim in group.findall("path")[1:]:
        rim.set("class", "rim")
    box = _box_of(source)
    group.append(mark(box.left, box.top))
    group.append(badge("bad", box.left, box.top))
    group.append(badge("count", box.right, box.top))
    return group


def _workflow_step(source: ET.Element, part: Part, name: str) -> ET.Element:
    group, box = _group_of(part, name), _box_of(source)
    group.extend(outline(part.shape, box))
    group.extend(_label(source, part))
    if part.shape in WITH_ICON:
        group.append(icon_path("glyph", part.shape, box.left + 19, box.middle))
    group.extend(_signs(part, box))
    if part.shape not in WITH_ICON:
        group.append(bar(box))
    group.append(mark(box.left, box.top))
    group.extend(corner_badges(box))
    return group


def _label(source: ET.Element, part: Part) -> Iterator[ET.Element]:
    label, detail = part_lines(part)
    kept = [shape for shape in _shapes(source) if shape.tag == "text"]
    for text in kept[len(label) :]:
        text.set("class", "detail")
    for text in kept[: len(label) + len(detail)]:
        if part.shape in WITH_ICON:
            text.text = (text.text or "").removeprefix(ICON_ROOM)
            text.set("x", f"{float(text.get('x', '0')) + 1.6 * len(ICON_ROOM):.2f}")
        yield text


def _signs(part: Part, box: Box) -> Iterator[ET.Element]:
    """Yield the signs of a part: map, sub-process, group of steps, and undo."""
    names: list[str] = [part.shape] if part.shape in WITH_SIGN else []
    names += ["undo"] if part.undo else []
    x = box.centre - 9 * (len(names) - 1)
    for index, name in enumerate(names):
        place = x + 18 * index, box.bottom - SIGN_ROW / 2 - 3
        yield icon_path(f"glyph sign of-{name}", name, *place, 0.75)


def _group_of(part: Part, name: str) -> ET.Element:
    kind = f"step kind-{part.shape}{' has-undo' if part.undo else ''}"
    group = ET.Element("g", {"id": name, "class": kind, "data-node": part.id})
    ET.SubElement(group, "title").text = part.label
    return group


def _shapes(source: ET.Element) -> Iterator[ET.Element]:
    """Yield the shapes that Graphviz drew for a node or an edge: allowed elements with allowed attributes."""
    for element in source.iter():
        name = element.tag.removeprefix(SVG)
        if name in ALLOWED:
            kept = {
                key: element.get(key, "") for key in ALLOWED[name] if element.get(key)
            }
            shape = ET.Element(name, kept)
            shape.text = element.text if name == "text" else None
            yield shape


def _box_of(group: ET.Element) -> Box:
    """Return the place of a node, from the outline that Graphviz drew."""
    outlines = [shape for shape in _shapes(group) if shape.tag != "text"]
    if outlines and outlines[0].tag == "ellipse":
        x, y, rx, ry = (
            float(outlines[0].get(a, "0")) for a in ("cx", "cy", "rx", "ry")
        )
        return Box(x - rx, y - ry, x + rx, y + ry)
    text = " ".join(shape.get("d") or shape.get("points") or "" for shape in outlines)
    numbers = [float(one) for one in re.findall(r"-?\d+(?:\.\d+)?", text)] or [0.0, 0.0]
    across, down = numbers[::2], numbers[1::2]
    return Box(min(across), min(down), max(across), max(down))


def _pixels(points: str) -> str:
    """Convert Graphviz's points to pixels, 1.15 for each."""
    return f"{float(points.removesuffix('pt') or 0) * 1.15:.0f}"
