"""The interface of channels, and the channel of a recipient."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from django.utils.module_loading import import_string

from orchestrator.configuration.notice_settings import Recipient
from orchestrator.definition.secrets import spellings
from orchestrator.notices.message import NoticeMessage

SECRET_FROM = 4
"""The least length in characters of a text that counts as a secret."""


class Channel(Protocol):
    """A way to send notices, made for each attempt with the `options` of the recipient.

    It runs in a process of its own, which is killed after 30 s. When it is not known whether a message arrived, the
    message is sent again with the same `message.id`.
    """

    def send(self, message: NoticeMessage) -> None:
        """Send a message.

        Raises:
            Permanent: the receiver will never accept it; the notice is given up.
            Retry: the receiver may accept it later.
            Exception: it was not sent, and is tried again.
        """


def channel_of(recipient: Recipient) -> Channel:
    """Return the channel of a recipient.

    Raises:
        ImportError: there is no such class.
    """
    from orchestrator.notices.email import Email  # noqa: PLC0415  unused channels are not loaded
    from orchestrator.notices.webhook import Webhook  # noqa: PLC0415  unused channels are not loaded

    if recipient.to:
        return Email(recipient.to)
    if recipient.url:
        return Webhook(recipient.url, recipient.secret)
    channel: Channel = import_string(recipient.channel)(**recipient.options)
    return channel


def redact(text: str, secrets: Iterable[str]) -> str:
    """Replace the secrets in a text, also those in the spellings of programs."""
    long = (secret for secret in secrets if len(secret) >= SECRET_FROM)
    forms = {form for secret in long for form in (secret, *spellings(secret))}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, "…")
    return text
