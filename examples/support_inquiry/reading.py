"""The steps that read an inquiry's media. Another step notes the media that cannot be read."""

from pathlib import PurePath

from examples import readers
from examples.readers import Speech, Text, Tone, tone_of
from examples.support_inquiry.attachments import attachment
from examples.support_inquiry.findings import Classification, Medium
from orchestrator import Permanent
from orchestrator.definition import Failure, StepContext

FIELDS = {
    ".png": (Medium.IMAGE, "image"),
    ".flac": (Medium.AUDIO, "recording"),
    ".pdf": (Medium.DOCUMENT, "document"),
}


def classify(text: str, attachments: list[str]) -> Classification:
    """Sort what has come by medium.

    Raises:
        Permanent: nothing has, or something that nobody here can read.
    """
    media, named = ([Medium.TEXT] if text.strip() else []), dict[str, str]()
    for name in attachments:
        if (suffix := PurePath(name).suffix) not in FIELDS:
            raise Permanent(f"nobody here reads {name!r}")
        medium, field = FIELDS[suffix]
        if field in named:
            raise Permanent(f"a second {medium}, {name!r}: one of each is read")
        media.append(medium)
        named[field] = name
    if not media:
        raise Permanent("the inquiry is empty")
    return Classification(media, **named)


def read_text(text: str) -> Tone:
    """Tell language and mood of what the customer wrote."""
    return tone_of(text)


def describe_image(classification: Classification) -> Text:
    """Read the text in the picture."""
    return readers.text_in(attachment(classification.image))


def transcribe_audio(classification: Classification, context: StepContext) -> Speech:
    """Write down what the customer said."""
    recording = attachment(classification.recording)
    return readers.speech_in(recording, context.progress)


def judge_speech(speech: Speech) -> Tone:
    """Tell language and mood of what the customer said."""
    return tone_of(speech.words)


def extract_document(classification: Classification, context: StepContext) -> Text:
    """Extract the text page by page; what is read stays read when an attempt is cut off."""
    document = attachment(classification.document)
    pages = readers.pages_of(document)
    lines: list[list[str]] = list(context.saved or [])
    reader = ""
    for number in range(len(lines), pages):
        page = readers.page_of(document, number)
        lines.append(page.lines)
        reader = page.reader
        context.save(lines)
        context.progress(number + 1, pages, f"page {number + 1}")
    return Text([line for page in lines for line in page], 1.0, reader)


def note_unreadable(error: Failure) -> str:
    """Go on without a medium that cannot be read: somebody has to look at it."""
    return error.message
