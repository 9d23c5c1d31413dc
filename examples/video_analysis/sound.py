"""The steps that listen."""

from examples import readers
from examples.readers import Speech, Tone
from examples.video_analysis.sight import film_named
from orchestrator.definition import Failure, StepContext


def hear_track(video: str, context: StepContext) -> Speech:
    """Write down what is said."""
    return readers.speech_in(film_named(video), context.progress)


def analyse_language(speech: Speech) -> Tone:
    """Tell language and mood of what is said."""
    return readers.tone_of(speech.words)


def note_silence(error: Failure) -> str:
    """Go on without a sound track that cannot be decoded."""
    return error.message
