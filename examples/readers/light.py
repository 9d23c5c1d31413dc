"""The light readers: plain Python that takes all that is seen or heard from the caption beside the file."""

import json
import re
from pathlib import Path
from typing import Any

from examples.readers.findings import (
    Film,
    Moment,
    Mood,
    Progress,
    Speech,
    Text,
    Unreadable,
    silent,
)
from examples.readers.language import vocabulary

READER = "caption beside the file (light)"
WORD_LIST = "short word list (light)"

BEGINNINGS = {
    ".png": b"\x89PNG\r\n\x1a\n",
    ".pdf": b"%PDF-",
    ".flac": b"fLaC",
    ".webm": b"\x1a\x45\xdf\xa3",
}
GOOD = vocabulary(
    "excellent glad good great happy like love nice perfect thank thanks wonderful"
)
BAD = vocabulary(
    "angry bad broke broken damaged disappointed late never overdue problem terrible urgent worst wrong"
)


def text_in(picture: Path) -> Text:
    return Text(caption(picture)["lines"], 1.0, READER)


def speech_in(recording: Path, progress: Progress = silent) -> Speech:
    said = caption(recording)
    progress(1, 1, "read from the caption")
    return Speech(said["words"], said["seconds"], READER)


def mood_of(text: str) -> Mood:
    words = re.findall(r"[a-z]+", text.lower())
    good, bad = sum(w in GOOD for w in words), sum(w in BAD for w in words)
    return Mood((good - bad) / max(good + bad, 1), WORD_LIST)


def pages_of(document: Path) -> int:
    return len(caption(document)["pages"])


def page_of(document: Path, number: int) -> Text:
    return Text(caption(document)["pages"][number], 1.0, READER)


def film_of(film: Path) -> Film:
    said = caption(film)
    return Film(said["seconds"], said["width"], said["height"], bool(said["words"]))


def look_at(film: Path, second: float) -> Moment:
    scenes = caption(film)["scenes"]
    shown = next((scene for scene in scenes if second < scene["until"]), scenes[-1])
    return Moment(second, shown["lines"], shown["faces"], 1.0, READER)


def caption(file: Path) -> Any:
    """Return what the caption beside a file says is in it.

    Raises:
        Unreadable: the file does not begin as its name says, or has no caption.
    """
    with file.open("rb") as opened:
        if not opened.read(8).startswith(BEGINNINGS.get(file.suffix, b"\0")):
            raise Unreadable(f"{file.name} does not begin as its name says")
    beside = file.with_name(f"{file.name}.json")
    if not beside.exists():
        raise Unreadable(
            f"{file.name} has no caption, and only the media extra can read it"
        )
    return json.loads(beside.read_text())
