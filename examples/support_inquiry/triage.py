"""The steps that put together what was read, and tell how urgent it is."""

import re

from examples.readers import FOREIGN, Speech, Text, Tone
from examples.readers.language import vocabulary
from examples.support_inquiry.findings import MergedContext, Priority, Triage

URGENT_WORDS = vocabulary("emergency error immediately overdue stopped urgent")
TROUBLE_WORDS = vocabulary("broken cancel complaint damaged late missing refund wrong")
URGENT_POINTS, TROUBLE_POINTS = 3, 1
BAD_MOOD, WORST_MOOD = -0.05, -0.5
URGENT_FROM, NORMAL_FROM = 4, 1  # points


def merge(
    text: str,
    tone: Tone | None,
    picture: Text | None,
    speech: Speech | None,
    voice: Tone | None,
    document: Text | None,
    image_unreadable: str | None,
    audio_unreadable: str | None,
    document_unreadable: str | None,
) -> MergedContext:
    """Put together what all branches have found; those that were not taken have found nothing."""
    parts = [
        text,
        "\n".join(picture.lines) if picture else "",
        speech.words if speech else "",
        "\n".join(document.lines) if document else "",
    ]
    tones = [one for one in (tone, voice) if one]
    missing = (image_unreadable, audio_unreadable, document_unreadable)
    return MergedContext(
        "\n".join(filter(None, parts)),
        sorted({one.language for one in tones}),
        min((one.mood for one in tones), default=0.0),
        [message for message in missing if message],
    )


def prioritize(merged: MergedContext) -> Triage:
    """Count what speaks for haste."""
    words = set(re.findall(r"[a-z]+", merged.text.lower()))
    found = [
        (URGENT_POINTS, sorted(words & URGENT_WORDS)),
        (TROUBLE_POINTS, sorted(words & TROUBLE_WORDS)),
        (1, ["bad mood"] if merged.mood <= BAD_MOOD else []),
        (1, ["very bad mood"] if merged.mood <= WORST_MOOD else []),
        (1, merged.unreadable),
        (1, ["another language"] if foreign(merged) else []),
    ]
    points = sum(weight * len(reasons) for weight, reasons in found)
    return Triage(
        priority_of(points), points, [one for _, reasons in found for one in reasons]
    )


def priority_of(points: int) -> Priority:
    if points >= URGENT_FROM:
        return Priority.URGENT
    return Priority.NORMAL if points >= NORMAL_FROM else Priority.LOW


def foreign(merged: MergedContext) -> bool:
    """Whether some of it is in a language that nothing here understands."""
    return any(language in FOREIGN for language in merged.languages)
