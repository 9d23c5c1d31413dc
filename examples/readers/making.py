"""Makes the sample media: `python -m examples.readers.making`, with the extra `media` and the speech synthesizer Flite.

Everything is drawn or spoken by this program. Beside each file it writes the caption that the light readers use.
"""

import json
import random
import subprocess
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFont

EXAMPLES = Path(__file__).resolve().parent.parent
INQUIRIES = EXAMPLES / "support_inquiry" / "media"
FILMS = EXAMPLES / "video_analysis" / "media"

INK, PAPER = (30, 30, 70), (250, 250, 245)
WIDTH, HEIGHT, RATE = 480, 270, 10  # of films: pixels, frames a second
HEARD_RATE = 16_000  # samples a second

Pixels = Any  # rows of red, green and blue


def main() -> None:
    """Make everything anew."""
    for folder in (INQUIRIES, FILMS):
        folder.mkdir(exist_ok=True)
    picture("overdue-invoice", ["Invoice 4711 overdue"])
    picture("machine-display", ["Error 17", "Motor stopped"])
    recording("late-order", "my order is late and i want my money back", "slt")
    recording(
        "urgent-call", "this is urgent the machine is broken please call me back", "rms"
    )
    recording("thanks", "thank you the delivery was great", "awb")
    document(
        "complaint",
        [
            ["Complaint", "Order 4711 arrived broken.", "The box was open."],
            ["I want a refund of 120 euros", "before the end of the month."],
        ],
    )
    document("address", [["New address", "Please send my next order to Kyoto."]])
    damaged("damaged-scan.png", b"\x89PNG\r\n\x1a\n")
    damaged("damaged-call.flac", b"fLaC")
    notice()
    team()
    shapes()


def caption(file: Path, **says: Any) -> None:
    beside = file.with_name(f"{file.name}.json")
    beside.write_text(json.dumps(says, indent=2) + "\n")


def damaged(name: str, beginning: bytes) -> None:
    """A file that begins well and goes on with noise, always the same. It has no caption."""
    noise = random.Random(name).randbytes(600)  # noqa: S311  noise, no secret
    (INQUIRIES / name).write_bytes(beginning + noise)


# Pictures and documents


def page(lines: list[str], width: int, height: int, size: int) -> Pixels:
    image = Image.new("RGB", (width, height), PAPER)
    draw = ImageDraw.Draw(image)
    top = (height - len(lines) * size * 1.6) / 2
    for number, line in enumerate(lines):
        place = (width * 0.08, top + number * size * 1.6)
        draw.text(place, line, font=ImageFont.load_default(size), fill=INK)
    return np.asarray(image)


def picture(name: str, lines: list[str]) -> None:
    file = INQUIRIES / f"{name}.png"
    Image.fromarray(page(lines, 520, 180, 36)).save(file, optimize=True)
    caption(file, lines=lines)


def document(name: str, pages: list[list[str]]) -> None:
    """A PDF document with one font and a page for each list of lines."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<</Type /Catalog /Pages 2 0 R>>",
        f"<</Type /Pages /Kids [{kids}] /Count {len(pages)}>>",
        "<</Type /Font /Subtype /Type1 /BaseFont /Helvetica>>",
    ]
    for number, lines in enumerate(pages):
        text = " ".join(f"({line}) Tj T*" for line in lines)
        content = f"BT /F1 14 Tf 20 TL 60 760 Td {text} ET"
        objects += [
            (
                "<</Type /Page /Parent 2 0 R /MediaBox [0 0 595 842]"
                f" /Resources <</Font <</F1 3 0 R>>>> /Contents {5 + 2 * number} 0 R>>"
            ),
            f"<</Length {len(content)}>>\nstream\n{content}\nendstream",
        ]
    file = INQUIRIES / f"{name}.pdf"
    file.write_bytes(pdf(objects))
    caption(file, pages=pages)


def pdf(objects: list[str]) -> bytes:
    """Number the objects from 1, and list where each begins."""
    out, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode()
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    count = len(objects) + 1
    return (
        out
        + f"xref\n0 {count}\n0000000000 65535 f \n{table}".encode()
        + f"trailer\n<</Size {count} /Root 1 0 R>>\nstartxref\n{len(out)}\n%%EOF\n".encode()
    )


# Speech


def spoken(text: str, voice: str) -> Pixels:
    """Samples of 16 bits, at HEARD_RATE."""
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/speech.wav"
        subprocess.run(["flite", "-voice", voice, "-t", text, "-o", file], check=True)
        resampler = av.AudioResampler(format="s16", layout="mono", rate=HEARD_RATE)
        with av.open(file) as container:
            frames = [*container.decode(audio=0), None]
            parts = [part for frame in frames for part in resampler.resample(frame)]
    return np.concatenate([part.to_ndarray()[0] for part in parts])


def recording(name: str, words: str, voice: str) -> None:
    samples = spoken(words, voice)
    file = INQUIRIES / f"{name}.flac"
    with av.open(str(file), "w") as container:
        stream = container.add_stream("flac", rate=HEARD_RATE, layout="mono")
        add_sound(container, stream, samples)
    caption(file, words=words, seconds=round(len(samples) / HEARD_RATE, 2))


def add_sound(container: Any, stream: Any, samples: Pixels) -> None:
    frame = av.AudioFrame.from_ndarray(samples.reshape(1, -1), "s16", "mono")
    frame.sample_rate, frame.pts = HEARD_RATE, 0
    context = stream.codec_context
    if not context.is_open:  # opening tells the size of its frames
        context.open()
    resampler = av.AudioResampler(
        format=context.format.name,
        layout="mono",
        rate=context.sample_rate,
        frame_size=context.frame_size or 1024,
    )
    for source in (frame, None):
        for part in resampler.resample(source):
            container.mux(stream.encode(part))
    container.mux(stream.encode(None))


# Films


def notice() -> None:
    """Two pages of text, the second from second 2.5 on."""
    words = "please refund my order it arrived broken"
    first = page(["Invoice 4711 overdue"], WIDTH, HEIGHT, 32)
    second = page(["Pay by Friday", "or call 5550 120"], WIDTH, HEIGHT, 32)
    film("notice", [*[first] * 25, *[second] * 23], spoken(words, "slt"))
    scenes = [
        {"until": 2.5, "lines": ["Invoice 4711 overdue"], "faces": 0},
        {"until": 4.8, "lines": ["Pay by Friday", "or call 5550 120"], "faces": 0},
    ]
    describe("notice", words, 4.8, scenes)


def team() -> None:
    """One face, joined by a second one after a second and a half."""
    words = "thank you the delivery was great"
    one, two = np.full((HEIGHT, WIDTH, 3), (110, 140, 150), np.uint8), None
    put_face(one, 30, 25, skin=(215, 175, 150))
    two = one.copy()
    put_face(two, 245, 25, skin=(190, 145, 115))
    film("team", [*[one] * 15, *[two] * 33], spoken(words, "awb"))
    scenes = [
        {"until": 1.5, "lines": [], "faces": 1},
        {"until": 4.8, "lines": [], "faces": 2},
    ]
    describe("team", words, 4.8, scenes)


def shapes() -> None:
    """A disc crossing the picture, without a sound."""
    frames = []
    for number in range(40):
        frame = np.full((HEIGHT, WIDTH, 3), (225, 230, 235), np.uint8)
        cv2.circle(frame, (40 + number * 10, 135), 30, (70, 120, 180), -1, cv2.LINE_AA)
        frames.append(frame)
    film("shapes", frames)
    describe("shapes", "", 4.0, [{"until": 4.0, "lines": [], "faces": 0}])


def describe(name: str, words: str, seconds: float, scenes: list[Any]) -> None:
    size = {"width": WIDTH, "height": HEIGHT}
    file = FILMS / f"{name}.webm"
    caption(file, words=words, seconds=seconds, **size, scenes=scenes)


def put_face(image: Pixels, left: int, top: int, skin: tuple[int, int, int]) -> None:
    """Draw a shaded face, 220 pixels high, as light falls on one: that is what a cascade looks for."""
    tone = np.asarray(skin, float)
    for centre, axes, light in features():
        x, y = left + centre[0], top + centre[1]
        colour = tuple(int(min(255, part)) for part in tone * light)
        cv2.ellipse(image, (x, y), axes, 0, 0, 360, colour, -1, cv2.LINE_AA)
    part = image[top : top + 225, left : left + 205]
    part[:] = cv2.GaussianBlur(part, (0, 0), 2.5)


def features() -> Iterator[tuple[tuple[int, int], tuple[int, int], float]]:
    """Give centre, half axes and brightness of each part: hair, face, cheeks, eyes and brows, nose, mouth."""
    yield (102, 104), (74, 94), 0.3
    yield (102, 115), (61, 83), 1.0
    yield (102, 52), (54, 20), 0.3
    for side in (-1, 1):
        x = 102 + 29 * side
        yield (x + 5 * side, 131), (14, 11), 1.1
        yield (x, 99), (18, 11), 0.7
        yield (x, 86), (20, 4), 0.25
        yield (x, 101), (12, 6), 1.3
        yield (x, 101), (6, 6), 0.15
    yield (102, 120), (7, 23), 1.12
    yield (102, 142), (13, 4), 0.65
    yield (102, 164), (25, 7), 0.55
    yield (102, 162), (23, 2), 0.25


def film(name: str, frames: list[Pixels], samples: Pixels | None = None) -> None:
    with av.open(str(FILMS / f"{name}.webm"), "w") as container:
        pictures = container.add_stream("libvpx-vp9", rate=RATE)
        pictures.width, pictures.height, pictures.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        pictures.options = {"crf": "32", "b": "0", "g": "10"}
        if samples is not None:
            sound = container.add_stream("libopus", rate=48_000, layout="mono")
            sound.bit_rate = 48_000
        for number, pixels in enumerate(frames):
            shown = av.VideoFrame.from_ndarray(pixels, "rgb24")
            shown.pts, shown.time_base = number, Fraction(1, RATE)
            container.mux(pictures.encode(shown))
        container.mux(pictures.encode(None))
        if samples is not None:
            add_sound(container, sound, samples)


if __name__ == "__main__":
    main()
