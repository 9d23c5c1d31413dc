"""Announcements of the exchange about an order, in the form its clients' webhooks take."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import uuid4

from standardwebhooks.webhooks import Webhook


@dataclass(frozen=True)
class Announcement:
    """One message. Its id stays the same however often it is sent."""

    id: str
    body: str

    def headers(self, secret: str) -> dict[str, str]:
        """Id, time and signature after Standard Webhooks, made anew for each attempt to send it."""
        now = datetime.now(UTC)
        return {
            "Content-Type": "application/json",
            "webhook-id": self.id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": Webhook(secret).sign(self.id, now, self.body),
        }


def announce(event: str, data: dict[str, str], request_id: str = "") -> Announcement:
    """A new message about an event; a request id is given back as the process id."""
    message: dict[str, object] = {"type": event, "data": data}
    if request_id:
        message["process_id"] = request_id
    return Announcement(f"msg_{uuid4().hex}", json.dumps(message, ensure_ascii=False))
