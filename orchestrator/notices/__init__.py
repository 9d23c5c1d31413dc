"""Notices to people: their message, and the channels that send them.

A project's own channel is a class with the method `send`. `PROCESSION_NOTICES` names it:

    class Chat:
        def __init__(self, room: str) -> None: ...
        def send(self, message: NoticeMessage) -> None: ...
"""

from orchestrator.notices.channel import Channel
from orchestrator.notices.message import Item, NoticeMessage

__all__ = ["Channel", "Item", "NoticeMessage"]
