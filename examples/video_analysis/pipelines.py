"""The steps after looking and listening: both together, then what suits the kind of film, then the report."""

import re

from examples.readers import Film, Moment, Speech, Tone
from examples.video_analysis.findings import Analysis, Conclusion, Page, Report
from orchestrator.definition import StepContext

REFERENCE = re.compile(r"\b\d{3,}(?: \d{3,})*\b")


def integrate(
    conclusion: Conclusion,
    speech: Speech | None,
    tone: Tone | None,
    silence: str | None,
) -> Analysis:
    """Put together what was seen and heard."""
    sights = conclusion.sights
    return Analysis(
        sights.lines,
        sights.faces,
        speech.words if speech else "",
        tone.language if tone else "",
        tone.mood if tone else 0.0,
        sights.confidence,
        [*conclusion.doubts, *([silence] if silence else [])],
        [
            *sights.readers,
            *([speech.reader] if speech else []),
            *([tone.reader] if tone else []),
        ],
    )


def contains_text(analysis: Analysis) -> bool:
    return bool(analysis.lines)


def contains_faces(analysis: Analysis) -> bool:
    return analysis.faces > 0


def gather_pages(seen: list[Moment], context: StepContext) -> list[Page]:
    """Document pipeline: the texts in the order in which they are shown."""
    pages: list[Page] = []
    for number, moment in enumerate(seen, 1):
        context.progress(number, len(seen), f"{moment.second:g} s")
        if moment.lines and (not pages or pages[-1].lines != moment.lines):
            pages.append(Page(moment.second, moment.lines))
    return pages


def find_references(pages: list[Page]) -> list[str]:
    """Document pipeline: the numbers that letters are filed by."""
    text = "\n".join(line for page in pages for line in page.lines)
    return REFERENCE.findall(text)


def count_people(seen: list[Moment]) -> list[str]:
    """Face pipeline: how many people are in the picture, and from when on."""
    changes: list[tuple[int, float]] = []
    for moment in seen:
        if not changes or changes[-1][0] != moment.faces:
            changes.append((moment.faces, moment.second))
    return [f"{faces} in the picture at {second:g} s" for faces, second in changes]


def describe(analysis: Analysis, film: Film) -> list[str]:
    """General analysis: what can be said of any film."""
    heard = "with sound" if film.sound else "silent"
    return [
        f"{film.width} x {film.height}, {film.seconds:g} s, {heard}",
        "no text, no faces",
    ]


def report(
    analysis: Analysis,
    pages: list[Page] | None,
    references: list[str] | None,
    people: list[str] | None,
    description: list[str] | None,
) -> Report:
    """Say what was found, in plain words."""
    kind, findings = "general", description or []
    if pages is not None:
        shown = [f"{page.second:g} s: {' / '.join(page.lines)}" for page in pages]
        kind = "document"
        findings = [*shown, f"references: {', '.join(references or []) or 'none'}"]
    elif people is not None:
        kind, findings = "faces", people
    if analysis.words:
        findings = [*findings, f"said: {analysis.words} ({analysis.mood:+.2f})"]
    return Report(
        kind, findings, analysis.confidence, analysis.doubts, analysis.readers
    )
