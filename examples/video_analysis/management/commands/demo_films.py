import random

from examples.stream import Stream
from examples.video_analysis.processes import VideoAnalysis
from examples.video_analysis.sight import MEDIA
from orchestrator import start_process


class Command(Stream):
    """A steady stream of films to analyse: the sample films, in turn."""

    help = "Hands in films until SIGTERM or Ctrl-C."
    thing = "film"
    pause = 30.0
    most = 2_000
    handed_in = 0

    def number(self) -> int:
        return self.handed_in

    def enter(self, dice: random.Random) -> None:
        films = sorted(path.name for path in MEDIA.glob("*.webm"))
        film = films[self.handed_in % len(films)]
        start_process(VideoAnalysis, VideoAnalysis.Input(film))
        self.handed_in += 1
