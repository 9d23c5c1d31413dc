"""Films: PyAV finds the frame, the readers of pictures look at it."""

from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from examples.readers import pictures
from examples.readers.findings import Film, Moment, Unreadable


def film_of(film: Path) -> Film:
    """Measure a film.

    Raises:
        Unreadable: the file is no film, or a damaged one.
    """
    import av

    try:
        with av.open(str(film)) as container:
            stream = container.streams.video[0]
            seconds = (container.duration or 0) / av.time_base
            sound = bool(container.streams.audio)
            return Film(round(seconds, 2), stream.width, stream.height, sound)
    except (av.FFmpegError, IndexError) as error:
        raise Unreadable(f"{film.name} is not a film that can be read") from error


def look_at(film: Path, second: float) -> Moment:
    """Look for text and faces in the frame that is shown at a second."""
    pixels = frame(film, second)
    text, faces = pictures.text_of(pixels), pictures.faces_in(pixels)
    return Moment(second, text.lines, faces, text.certainty, reader())


def frame(film: Path, second: float) -> Any:
    """Decode one frame, as rows of blue, green and red."""
    import av

    try:
        with av.open(str(film)) as container:
            stream = container.streams.video[0]
            container.seek(int(second * av.time_base))  # to the key frame before it
            for shown in container.decode(stream):
                if shown.time >= second - 0.001:
                    return shown.to_ndarray(format="bgr24")
    except (av.FFmpegError, IndexError) as error:
        raise Unreadable(f"{film.name} is damaged at {second:g} s") from error
    raise Unreadable(f"{film.name} ends before {second:g} s")


@cache
def reader() -> str:
    return f"PyAV {version('av')}, {pictures.reader()}, OpenCV {version('opencv-python-headless')}"
