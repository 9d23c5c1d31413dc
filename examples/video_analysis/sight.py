"""The steps that look: again and more closely until what they see is steady."""

from itertools import pairwise
from pathlib import Path, PurePath

from examples import readers
from examples.readers import Film, Moment
from examples.video_analysis.findings import Conclusion, Sampling, Sights
from orchestrator import Permanent
from orchestrator.definition import StepContext

MEDIA = Path(__file__).resolve().parent / "media"
COARSEST = 2.0  # seconds between the frames of the first look
CONFIDENT = 0.8


def film_named(name: str) -> Path:
    """Return where the film of that name lies.

    Raises:
        Permanent: there is none.
    """
    path = MEDIA / name
    if PurePath(name).name != name or not path.is_file():
        raise Permanent(f"there is no film {name!r}")
    return path


def open_film(video: str) -> Film:
    """Measure the film."""
    return readers.film_of(film_named(video))


def has_sound(film: Film) -> bool:
    return film.sound


def sample(film: Film, sights: Sights | None) -> Sampling:
    """Choose the moments to look at: at each visit twice as many as at the last."""
    interval = sights.interval / 2 if sights else COARSEST
    count = max(1, int(film.seconds / interval))
    # Neither the first frame nor the last: films fade in and out.
    moments = [round((number + 0.5) * interval, 3) for number in range(count)]
    return Sampling(interval, [second for second in moments if second < film.seconds])


def look(video: str, moment: float) -> Moment:
    """Read the text and count the faces of one frame."""
    return readers.look_at(film_named(video), moment)


def weigh(sampling: Sampling, seen: list[Moment], context: StepContext) -> Sights:
    """Put the moments together. Neighbouring moments that agree make a finding sure; a finer look leaves fewer gaps."""
    alike = [
        one.lines == two.lines and one.faces == two.faces for one, two in pairwise(seen)
    ]
    confidence = sum(alike) / len(alike) if alike else 0.0
    context.progress(
        confidence, 1, f"every {sampling.interval:g} s: {confidence:.0%} steady"
    )
    return Sights(
        round(confidence, 3),
        sampling.interval,
        len(seen),
        list(dict.fromkeys(line for one in seen for line in one.lines)),
        max((one.faces for one in seen), default=0),
        sorted({one.reader for one in seen}),
    )


def confident(sights: Sights) -> bool:
    return sights.confidence >= CONFIDENT


def note_doubt(sights: Sights) -> str:
    """Go on with what there is, and say that it is not sure."""
    return f"only {sights.confidence:.0%} steady, looking every {sights.interval:g} s"


def conclude(sights: Sights, doubt: str | None) -> Conclusion:
    """End the looking."""
    return Conclusion(sights, [doubt] if doubt else [])
