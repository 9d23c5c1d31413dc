"""The view that receives signed events.

It checks 1. source, settings and network; 2. size and content type; 3. the signature over the raw bytes; 4. strict
JSON; 5. the rate; and 6. stores a list as a whole or not at all. A failure before the last step stores nothing. Only
signed messages count against the rate, else anybody could use it up; an unreadable one counts as one event.
"""

from __future__ import annotations

import logging

from django.contrib.auth.decorators import login_not_required
from django.db import transaction
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.csrf import csrf_exempt

from orchestrator.configuration.conf import SettingRefused, log_once
from orchestrator.configuration.webhook_settings import Rate, Source, find_source
from orchestrator.engine.processes.events import send_all_events, send_events
from orchestrator.engine.storage.receipts import Receipt
from orchestrator.exceptions import (
    ConflictingEvent,
    EventRefused,
    InvalidMessage,
    ProcessionError,
    UnknownEventType,
)
from orchestrator.webhooks.body import PostedEvents, read_body, read_events
from orchestrator.webhooks.networks import check_network
from orchestrator.webhooks.not_accepted import NotAccepted
from orchestrator.webhooks.rates import check_rate
from orchestrator.webhooks.signatures import check_signature

security = logging.getLogger("orchestrator.security")

MENDED_AFTER = 60
"""Seconds after which a sender may try again where the settings are wrong."""


# The signature identifies the sender. The view has transactions of its own: in one around the request
# (ATOMIC_REQUESTS), senders of the same lists would wait longer for each other, and be rolled back more often than they
# retry.
@method_decorator(
    [csrf_exempt, login_not_required, transaction.non_atomic_requests], name="dispatch"
)
class WebhookView(View):
    """Receives an event: 202 with a receipt, and for a repeat 200 with the same receipt; or a list, with one each."""

    http_method_names = ("post",)

    def dispatch(
        self, request: HttpRequest, *args: object, **kwargs: object
    ) -> HttpResponseBase:
        try:
            return super().dispatch(request, *args, **kwargs)
        except NotAccepted as error:
            if error.status in (401, 403, 409):
                security.warning(
                    "webhook %a: %a", request.path[:200], error.detail[:300]
                )
            return error.response()

    def http_method_not_allowed(
        self, request: HttpRequest, *args: object, **kwargs: object
    ) -> JsonResponse:
        return NotAccepted(405, "method_not_allowed", "send a POST").response()

    def post(self, request: HttpRequest, source: str) -> JsonResponse:
        known = _find_source(source)
        check_network(known.networks, request)
        body = read_body(request)
        message_id = check_signature(known.keys, request.headers, body)
        posted = _read(body, message_id, source, known.rate)
        receipts = store_events(posted)
        answers = [
            {"receipt": receipt.number, "id": envelope.id}
            for receipt, envelope in zip(receipts, posted.envelopes, strict=True)
        ]
        repeated = all(receipt.repeated for receipt in receipts)
        answer = {"id": message_id, "receipts": answers}
        return JsonResponse(
            answer if posted.is_list else answers[0], status=200 if repeated else 202
        )


def _find_source(name: str) -> Source:
    """Return the source of a name.

    Raises:
        NotAccepted: 404 when there is none, 503 when its settings have a mistake.
    """
    try:
        source = find_source(name)
    except SettingRefused as mistake:
        log_once(str(mistake))
        detail = "this site is set up wrongly; send it again later, with the same id"
        raise NotAccepted(503, "misconfigured", detail, MENDED_AFTER) from None
    if source is None:
        raise NotAccepted(404, "not_found", "there is nothing at this address")
    return source


def _read(body: bytes, message_id: str, source: str, rate: Rate | None) -> PostedEvents:
    try:
        posted = read_events(body, message_id, source)
    except NotAccepted:
        check_rate(source, rate)
        raise
    check_rate(source, rate, len(posted.envelopes))
    return posted


def store_events(posted: PostedEvents) -> list[Receipt]:
    """Store an event in the inbox; of a list all events or none.

    Raises:
        NotAccepted: 422 for an unknown event or one of another form, 409 for an id that was used for another one.
    """
    try:
        return (send_all_events if posted.is_list else send_events)(posted.envelopes)
    except EventRefused as refused:
        place = refused.place if posted.is_list else None
        status, error, detail = _refusal_parts(refused.reason)
        raise NotAccepted(status, error, detail, place=place) from None


def _refusal_parts(reason: ProcessionError) -> tuple[int, str, str]:
    if isinstance(reason, UnknownEventType):
        return 422, "unknown_event_type", str(reason)
    if isinstance(reason, ConflictingEvent):
        return 409, "conflicting_event", str(reason)
    where = "data." if isinstance(reason, InvalidMessage) and reason.path else ""
    return 422, "invalid_message", f"{where}{reason}"
