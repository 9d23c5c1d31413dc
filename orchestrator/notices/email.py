"""Notices by e-mail, through the mail backend of the project."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from django.core.mail import EmailMessage

from orchestrator.configuration.site_settings import site_url
from orchestrator.exceptions import Retry
from orchestrator.notices.message import NoticeMessage


class Email:
    """Sends text mails.

    Args:
        to: the mail addresses.
    """

    def __init__(self, to: Sequence[str]) -> None:
        self.to = to

    def send(self, message: NoticeMessage) -> None:
        """Send a message with its id as `Message-ID`, by which mail programs recognise a repeat.

        Raises:
            Retry: the backend has not sent it.
            Exception: whatever the backend raises.
        """
        host = urlsplit(site_url()).hostname or "procession.invalid"
        mail = EmailMessage(
            subject=message.subject,
            body=message.text,
            to=list(self.to),
            headers={
                "Message-ID": f"<{message.id}@{host}>",
                "Auto-Submitted": "auto-generated",  # absence notices are not wanted
            },
        )
        sent: int | None = mail.send()  # backends of others do not all count
        if sent == 0:
            raise Retry(message="the mail backend has sent none")
