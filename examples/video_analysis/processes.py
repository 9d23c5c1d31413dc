"""The video analysis as a workflow: what the steps do is in `sight`, `sound` and `pipelines`."""

from dataclasses import dataclass

from examples.readers import Unreadable
from examples.video_analysis import pipelines, sight, sound
from examples.video_analysis.pipelines import contains_faces, contains_text
from examples.video_analysis.sight import confident, has_sound
from orchestrator.definition import (
    Workflow,
    case,
    catch,
    each,
    fork,
    join,
    repeat,
    route,
    start,
    step,
    then,
)

open_film = step(sight.open_film, gives="film")
sample = step(sight.sample, gives="sampling")
look = step(sight.look, gives="seen", timeout=30, concurrency=2)
weigh = step(sight.weigh, gives="sights")
note_doubt = step(sight.note_doubt, gives="doubt")
conclude = step(sight.conclude, gives="conclusion")
hear_track = step(sound.hear_track, gives="speech", timeout=120, concurrency=2)
note_silence = step(sound.note_silence, gives="silence")
analyse_language = step(sound.analyse_language, gives="tone")
integrate = step(pipelines.integrate, gives="analysis")
gather_pages = step(pipelines.gather_pages, gives="pages")
find_references = step(pipelines.find_references, gives="references")
count_people = step(pipelines.count_people, gives="people")
describe = step(pipelines.describe, gives="description")
report = step(pipelines.report)


class VideoAnalysis(Workflow):
    """Looks at a film and listens to it, more closely until it is sure, and reports what is in it."""

    @dataclass(frozen=True)
    class Input:
        video: str

    @staticmethod
    def summary(input: Input) -> str:
        """The film's name."""
        return input.video

    flow = (
        start(open_film),
        fork(open_film, into=[sample, case(has_sound, to=hear_track)]),
        each(sample, over="moments", do=look, item="moment", window=4, into=weigh),
        repeat(
            sample,
            look,
            weigh,
            until=confident,
            at_most=4,
            then=conclude,
            otherwise=note_doubt,
        ),
        then(note_doubt, conclude),
        then(hear_track, analyse_language),
        catch(hear_track, error=Unreadable, to=note_silence),
        join(conclude, analyse_language, note_silence, into=integrate),
        route(
            integrate,
            case(contains_text, to=gather_pages, priority=10),
            case(contains_faces, to=count_people, priority=5),
            otherwise=describe,
        ),
        then(gather_pages, find_references),
        join(find_references, count_people, describe, into=report),
    )
