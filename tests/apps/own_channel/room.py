"""A room of a chat: what is said in it is a line each in a file."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from orchestrator import Permanent, Retry
from orchestrator.notices import NoticeMessage


class Room:
    """Says what people are told in a room.

    Args:
        file: where it is said.
        token: what lets it in.
        mood: how it behaves: "well", or badly in some way.
    """

    def __init__(self, file: str, token: str = "", mood: str = "well") -> None:
        self.file, self.token, self.mood = Path(file), token, mood

    def send(self, message: NoticeMessage) -> None:
        said = {"id": message.id, "subject": message.subject, "number": message.number}
        with self.file.open("a") as room:
            room.write(json.dumps(said) + "\n")
        match self.mood:
            case "closed":
                raise Permanent(f"the room is closed to {self.token}")
            case "busy":
                raise Retry(message="come back later")
            case "broken":
                raise RuntimeError(f"cannot log in as {self.token}\nreally")
            case "frozen":
                time.sleep(3_600)
            case "dying":
                os.kill(os.getpid(), signal.SIGKILL)


class NoChannel:
    """Has no way to send anything."""


class Repeating:
    """A channel that says in its errors what it was made with."""

    def __init__(self, **options: Any) -> None:
        self.options = options

    def send(self, message: NoticeMessage) -> None:
        raise ValueError(self.options)
