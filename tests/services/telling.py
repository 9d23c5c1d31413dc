"""People are told in the test's own process: what a notifier does, without its processes and pauses."""

from typing import Any

from django.utils import timezone

from orchestrator.configuration.notice_settings import recipients
from orchestrator.engine.notices import outbox
from orchestrator.engine.notices.gathering import gather_notices
from orchestrator.models import Notice
from orchestrator.workers.send_attempt import SendingOutcome, send_notice

OPS = "ops"


def gathered() -> list[Notice]:
    """Gather all that has happened; return the notices that wait for their time."""
    while gather_notices():
        pass
    return list(Notice.objects.filter(status="gathering").order_by("recipient"))


def gathered_items() -> list[dict[str, Any]]:
    """Return what stands in the notice to the only recipient."""
    found = gathered()
    assert len(found) <= 1
    return list(found[0].items) if found else []


def due_now() -> None:
    """Let the time of all notices come."""
    Notice.objects.open().update(wake_at=timezone.now())


def deliver() -> list[SendingOutcome]:
    """Gather, and try once to send each notice that is due; return what came of it."""
    gathered()
    found, seen = list[SendingOutcome](), set[object]()
    while (notice := outbox.claim("test")) and notice.pk not in seen:
        seen.add(notice.pk)
        outcome = send_notice(notice, recipients()[notice.recipient])
        if outcome.error:
            outbox.mark_not_sent(notice, outcome.error, hopeless=outcome.hopeless)
        else:
            outbox.mark_sent(notice)
        found.append(outcome)
    return found
