"""Readers of pictures, recordings, documents and films: real or light, behind one interface.

The real readers come with the optional extra `media`. If one of them is missing, its light counterpart takes its
place: it looks at the caption that lies beside each sample file, and says so in what it returns. The choice is made
once, here; nothing of the real readers is loaded before the first call.
"""

from importlib.util import find_spec

from examples.readers import documents, films, light, moods, pictures, speech
from examples.readers.findings import (
    Film,
    Moment,
    Mood,
    Progress,
    Speech,
    Text,
    Tone,
    Unreadable,
)
from examples.readers.language import FOREIGN, language_of

NEEDED = {
    "pictures": ("cv2", "onnxruntime", "rapidocr"),
    "speech": ("av", "pocketsphinx"),
    "moods": ("vaderSentiment",),
    "documents": ("pypdf",),
    "films": ("av", "cv2", "onnxruntime", "rapidocr"),
}
"""The modules that each real reader imports."""


def real(reader: str) -> bool:
    """Whether the real one of these readers can be used here."""
    return all(find_spec(module) is not None for module in NEEDED[reader])


text_in = pictures.text_in if real("pictures") else light.text_in
speech_in = speech.speech_in if real("speech") else light.speech_in
mood_of = moods.mood_of if real("moods") else light.mood_of
pages_of = documents.pages_of if real("documents") else light.pages_of
page_of = documents.page_of if real("documents") else light.page_of
film_of = films.film_of if real("films") else light.film_of
look_at = films.look_at if real("films") else light.look_at

READERS = (
    "film_of",
    "look_at",
    "mood_of",
    "page_of",
    "pages_of",
    "speech_in",
    "text_in",
)
"""The functions that were chosen."""


def tone_of(text: str) -> Tone:
    """Tell a text's language and mood; the mood of a language that no reader knows is not judged."""
    language = language_of(text)
    if language in FOREIGN:
        return Tone(language, 0.0, "not judged")
    mood = mood_of(text)
    return Tone(language, mood.score, mood.reader)


__all__ = [
    "FOREIGN",
    "NEEDED",
    "READERS",
    "Film",
    "Moment",
    "Mood",
    "Progress",
    "Speech",
    "Text",
    "Tone",
    "Unreadable",
    "film_of",
    "language_of",
    "look_at",
    "mood_of",
    "page_of",
    "pages_of",
    "real",
    "speech_in",
    "text_in",
    "tone_of",
]
