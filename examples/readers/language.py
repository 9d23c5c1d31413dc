"""Which language a text is in: by its script, or by the small words that every sentence has."""

import re

JAPANESE = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")


def vocabulary(words: str) -> frozenset[str]:
    """The words of a line, as a set."""
    return frozenset(words.split())


SMALL_WORDS = {
    "English": vocabulary(
        "a and arrived for from i in is it my not of on please that the this to was we with you your"
    ),
    "German": vocabulary(
        "aber bitte das der die ein eine es ich in ist mein meine mit nicht sie und von war wir zu"
    ),
    "French": vocabulary(
        "avec ce dans de des est et il je la le les ma mon ne nous pas pour que un une vous"
    ),
}
UNKNOWN = "unknown"
FOREIGN = ("Japanese", *(name for name in SMALL_WORDS if name != "English"))
"""Languages that the reader of moods does not know."""


def language_of(text: str) -> str:
    """Name the language with the most of its small words in the text; UNKNOWN when there are none."""
    if JAPANESE.search(text):
        return "Japanese"
    words = re.findall(r"[^\W\d_]+", text.lower())
    counts = {
        language: sum(word in small for word in words)
        for language, small in SMALL_WORDS.items()
    }
    best = max(counts, key=lambda language: counts[language])
    return best if counts[best] else UNKNOWN
