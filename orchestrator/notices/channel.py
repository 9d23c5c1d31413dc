"""What a way of telling people has to do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from django.utils.module_loading import import_string

from orchestrator.definition.secrets import spellings
from orchestrator.notice_settings import Recipient
from orchestrator.notices.message import NoticeMessage

SECRET_FROM = 4
"""Letters from which on a text is taken for a secret."""


class Channel(Protocol):
    """A way by which notices go out; it is made anew for each attempt, with the `options` of the recipient.

    It runs in a process of its own, which is killed after 30 s. It may be asked to send the same message again, when it
    is not known whether it arrived: `message.id` is the same then.
    """

    def send(self, message: NoticeMessage) -> None:
        """Sends a message.

        Raises:
            Permanent: it will never be taken; it is given up.
            Retry: it may be taken after some time.
            Exception: it was not sent, and is tried again.
        """


def channel_of(recipient: Recipient) -> Channel:
    """The way to a recipient.

    Raises:
        ImportError: there is no such class.
    """
    from orchestrator.notices.email import Email  # noqa: PLC0415  what is not used is not loaded
    from orchestrator.notices.webhook import Webhook  # noqa: PLC0415  what is not used is not loaded

    if recipient.to:
        return Email(recipient.to)
    if recipient.url:
        return Webhook(recipient.url, recipient.secret)
    channel: Channel = import_string(recipient.channel)(**recipient.options)
    return channel


def without(text: str, secrets: Iterable[str]) -> str:
    """A text without the secrets that stand in it, as they are or as a program spells them."""
    long = (secret for secret in secrets if len(secret) >= SECRET_FROM)
    forms = {form for secret in long for form in (secret, *spellings(secret))}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, "…")
    return text
