"""The door for signed events.

1. known source, from where it sends; 2. size and content type; 3. signature over the raw bytes; 4. not too many;
5. strict JSON; 6. into the inbox. What fails before the last step leaves nothing behind. Only what is signed counts as
sent, else anybody could use up what a source may send.
"""

from __future__ import annotations

import logging

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.csrf import csrf_exempt

from orchestrator.engine.inbox import Receipt
from orchestrator.engine.processes import send_event
from orchestrator.exceptions import ConflictingEvent, InvalidMessage, UnknownEventType
from orchestrator.webhooks.body import Envelope, read_body, read_envelope
from orchestrator.webhooks.networks import check_network
from orchestrator.webhooks.not_accepted import NotAccepted
from orchestrator.webhooks.rates import check_rate
from orchestrator.webhooks.signatures import check_signature

security = logging.getLogger("orchestrator.security")


# The signature says who it is.
@method_decorator([csrf_exempt, login_not_required], name="dispatch")
class WebhookView(View):
    """Takes one event: 202 with a receipt, and for a repeat 200 with the same receipt."""

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
        keys = settings.WEBHOOK_SOURCES.get(source)
        if not keys:
            raise NotAccepted(404, "not_found", "there is nothing at this address")
        check_network(source, request)
        body = read_body(request)
        message_id = check_signature(keys, request.headers, body)
        check_rate(source)
        receipt = deliver(read_envelope(body), message_id, source)
        answer = {"receipt": receipt.number, "id": message_id}
        return JsonResponse(answer, status=200 if receipt.repeated else 202)


def deliver(envelope: Envelope, message_id: str, source: str) -> Receipt:
    """Puts the event into the inbox.

    Raises:
        NotAccepted: 422 when it is not a known event of the declared form, 409 when the id was used for another one.
    """
    try:
        return send_event(
            envelope.type,
            envelope.data,
            id=message_id,
            source=source,
            process_id=envelope.process_id,
            correlation_key=envelope.correlation_key,
        )
    except UnknownEventType as error:
        raise NotAccepted(422, "unknown_event_type", str(error)) from None
    except InvalidMessage as error:
        where = "data." if error.path else ""
        raise NotAccepted(422, "invalid_message", f"{where}{error}") from None
    except ConflictingEvent as error:
        raise NotAccepted(409, "conflicting_event", str(error)) from None
