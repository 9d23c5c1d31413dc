"""Speech in recordings and films: PyAV decodes the sound, PocketSphinx with its own small English model hears."""

from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from examples.readers.findings import Progress, Speech, Unreadable, silent

RATE = 16_000  # samples a second, as the model was trained with
SAMPLE = 2  # bytes


def speech_in(recording: Path, progress: Progress = silent) -> Speech:
    """Write down what is said in a recording, or in a film's sound track.

    Raises:
        Unreadable: the file has no sound that can be decoded.
    """
    progress(0, 2, "decoding")
    sound = samples(recording)
    progress(1, 2, "listening")
    words = heard(sound)
    progress(2, 2, words[:60])
    return Speech(words, round(len(sound) / SAMPLE / RATE, 2), reader())


def samples(recording: Path) -> bytes:
    """Decode a file's sound to one channel of 16-bit samples."""
    import av

    resampler = av.AudioResampler(format="s16", layout="mono", rate=RATE)
    try:
        with av.open(str(recording)) as container:
            # The last, empty frame makes the resampler give back what it holds.
            frames = [*container.decode(audio=0), None]
            parts = [part for frame in frames for part in resampler.resample(frame)]
    except (av.FFmpegError, IndexError) as error:
        raise Unreadable(f"{recording.name} has no readable sound") from error
    return b"".join(part.to_ndarray().tobytes() for part in parts)


def heard(sound: bytes) -> str:
    """Recognise free English speech in one utterance."""
    listener = decoder()
    listener.start_utt()
    listener.process_raw(sound, no_search=False, full_utt=True)
    listener.end_utt()
    hypothesis = listener.hyp()
    return str(hypothesis.hypstr) if hypothesis else ""


def decoder() -> Any:
    """A new recogniser: one that has heard something else before hears a little differently."""
    from pocketsphinx import Decoder

    return Decoder(samprate=RATE, loglevel="FATAL")


@cache
def reader() -> str:
    return f"PocketSphinx {version('pocketsphinx')}"
