"""How people are told: what a notice says, and the ways by which it goes out.

A way of your own is a class with one method, `send`, that is named in `PROCESSION_NOTICES`:

    class Chat:
        def __init__(self, room: str) -> None: ...
        def send(self, message: NoticeMessage) -> None: ...
"""

from orchestrator.notices.channel import Channel
from orchestrator.notices.message import Item, NoticeMessage

__all__ = ["Channel", "Item", "NoticeMessage"]
