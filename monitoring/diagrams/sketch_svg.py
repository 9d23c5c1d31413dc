"""Graphviz's layout of a sketch as a picture for a page: shapes of our own at the places it found."""

from collections.abc import Iterator
from xml.etree import ElementTree as ET

from monitoring.diagrams import words
from monitoring.diagrams.box import Box
from monitoring.diagrams.dot import CLOCK_ROOM
from monitoring.diagrams.marks import bar, clock, corner_badges, mark, sign
from monitoring.diagrams.outlines import glyph, outline
from monitoring.diagrams.sketch import Line, Part, Sketch
from monitoring.diagrams.sketch_dot import ICON_ROOM, WITH_ICON, has_signs, part_lines
from monitoring.diagrams.svg import SVG, box_of, canvas_of, shapes, slugs_of

LINE_CLASS = {
    "deadline": " is-deadline",
    "error": " is-error",
    "repeat": " is-repeat",
    "default": " is-default",
}
SIGNS = {"deadline": "waiting", "error": "bolt", "repeat": "retrying"}
"""What is drawn before a line's label, by its kind."""

SIGN_ROW = 20.0
"""Height that the row of signs at a part's lower edge takes."""


def sketch_picture(raw: str, sketch: Sketch) -> ET.Element:
    """A picture of the sketch with stable ids: steps `n_<slug>`, lines `e_<n>`, gates `g_<n>`."""
    source = ET.fromstring(raw)  # noqa: S314  Graphviz wrote it, in a process of ours
    groups = {group.get("id"): group for group in source.iter(f"{SVG}g")}
    picture, canvas = canvas_of(source)
    for index, line in enumerate(sketch.lines):
        canvas.append(_line(groups[f"l{index}"], line, index))
    names = slugs_of([part.id for part in sketch.parts])
    for index, (part, name) in enumerate(zip(sketch.parts, names, strict=True)):
        draw = _step if part.is_step else _gate
        canvas.append(draw(groups[f"p{index}"], part, name))
    return picture


def _line(source: ET.Element, line: Line, index: int) -> ET.Element:
    kind = f"move{LINE_CLASS.get(line.kind, '')}"
    group = ET.Element("g", {"id": f"e_{index}", "class": kind, "data-edge": line.id})
    said = " ".join(text.strip() for text in line.label)
    ET.SubElement(group, "title").text = said or words.line_word(line.kind)
    group.extend(shapes(source))
    texts = group.findall("text")
    for text in texts:
        text.set("x", f"{float(text.get('x', '0')) + 4:.2f}")
    if line.kind in SIGNS and texts:
        first = texts[0]
        first.text = (first.text or "").replace("\u00a0", " ").strip()
        x, y = float(first.get("x", "0")), float(first.get("y", "0"))
        group.append(clock(x, y, SIGNS[line.kind]))
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
    group.extend(outline(part.shape, box_of(source)))
    return group


def _step(source: ET.Element, part: Part, name: str) -> ET.Element:
    kind = f"step kind-{part.shape}{' has-undo' if part.undo else ''}"
    group = ET.Element("g", {"id": name, "class": kind, "data-node": part.id})
    ET.SubElement(group, "title").text = part.label
    box = box_of(source)
    group.extend(outline(part.shape, box))
    group.extend(_label(source, part))
    if part.shape in WITH_ICON:
        group.append(glyph(part.shape, box.left + 19, box.middle))
    group.extend(_signs(part, box))
    if part.shape not in WITH_ICON:
        group.append(bar(box))
    group.append(mark(box.left, box.top))
    group.extend(corner_badges(box))
    return group


def _label(source: ET.Element, part: Part) -> Iterator[ET.Element]:
    label, detail = part_lines(part)
    kept = [shape for shape in shapes(source) if shape.tag == "text"]
    for text in kept[len(label) :]:
        text.set("class", "detail")
    for text in kept[: len(label) + len(detail)]:
        if part.shape in WITH_ICON:
            text.text = (text.text or "").removeprefix(ICON_ROOM)
            text.set("x", f"{float(text.get('x', '0')) + 1.6 * len(ICON_ROOM):.2f}")
        yield text


def _signs(part: Part, box: Box) -> Iterator[ET.Element]:
    """What a part is beside its label: a fan-out, a process of its own, several steps, or one that can be undone."""
    if not has_signs(part):
        return
    names: list[str] = [part.shape] if part.shape in ("map", "run", "group") else []
    names += ["undo"] if part.undo else []
    x = box.centre - 9 * (len(names) - 1)
    for index, name in enumerate(names):
        yield sign(name, x + 18 * index, box.bottom - SIGN_ROW / 2 - 3)
