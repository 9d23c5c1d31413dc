"""The mood of English text: VADER, whose lexicon is in its wheel."""

from functools import cache
from importlib.metadata import version
from typing import Any

from examples.readers.findings import Mood


def mood_of(text: str) -> Mood:
    """Judge how a text sounds."""
    score = analyser().polarity_scores(text)["compound"]
    return Mood(round(float(score), 3), reader())


@cache
def analyser() -> Any:
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    return SentimentIntensityAnalyzer()


@cache
def reader() -> str:
    return f"VADER {version('vaderSentiment')}"
