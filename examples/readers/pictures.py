"""Text and faces in pictures: RapidOCR, whose models are in its wheel, and OpenCV's cascade classifier."""

from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from examples.readers.findings import Text, Unreadable

LARGEST_SIDE = 640  # pixels; larger pictures are made smaller before text is searched
SMALLEST_FACE = 40  # pixels
NEIGHBOURS = 5  # detections that must agree on a face


def text_in(picture: Path) -> Text:
    """Read the text in a picture.

    Raises:
        Unreadable: the file is no picture, or a damaged one.
    """
    import cv2

    # The error alone says what is wrong with a file.
    cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)
    pixels = cv2.imread(str(picture), cv2.IMREAD_COLOR)
    if pixels is None:
        raise Unreadable(f"{picture.name} is not a picture that can be read")
    return text_of(pixels)


def text_of(pixels: Any) -> Text:
    """Read the text in rows of blue, green and red."""
    found = recogniser()(pixels)
    scores = list(map(float, found.scores or ()))
    certainty = sum(scores) / len(scores) if scores else 0.0
    return Text(list(found.txts or ()), round(certainty, 3), reader())


def faces_in(pixels: Any) -> int:
    """Count the faces that look this way."""
    import cv2

    grey = cv2.cvtColor(pixels, cv2.COLOR_BGR2GRAY)
    least = (SMALLEST_FACE, SMALLEST_FACE)
    return len(cascade().detectMultiScale(grey, 1.1, NEIGHBOURS, minSize=least))


@cache
def recogniser() -> Any:
    """The text recogniser; loading its models takes about a second."""
    from rapidocr import RapidOCR

    return RapidOCR(
        params={
            "Global.log_level": "error",
            "Global.use_cls": False,  # no text upside down
            "Det.limit_type": "max",
            "Det.limit_side_len": LARGEST_SIDE,
            # Workers are processes already; more threads only push one another aside.
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
        }
    )


@cache
def cascade() -> Any:
    import cv2

    cv2.setNumThreads(1)
    folder = Path(cv2.__file__).parent / "data"
    return cv2.CascadeClassifier(str(folder / "haarcascade_frontalface_default.xml"))


@cache
def reader() -> str:
    return f"RapidOCR {version('rapidocr')}"
