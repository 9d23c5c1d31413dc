"""The refusal of a webhook; nothing of its message is stored."""

from __future__ import annotations

from http import HTTPStatus

from django.http import JsonResponse


class NotAccepted(Exception):
    """A webhook that is not accepted.

    Args:
        status: the HTTP status, 4xx; 503 where the settings of this site are wrong.
        error: a word for programs, like "bad_signature".
        detail: what is wrong and what would be right, for people.
        retry_after: seconds after which the sender may try again; 0 if that is in vain.
        place: the position of the event in a list, counted from 0.
    """

    def __init__(
        self,
        status: int,
        error: str,
        detail: str,
        retry_after: int = 0,
        place: int | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.error, self.detail = status, error, detail
        self.retry_after, self.place = retry_after, place

    def response(self) -> JsonResponse:
        """Return the answer to the sender."""
        body: dict[str, object] = {"error": self.error, "detail": self.detail}
        if self.place is not None:
            body["place"] = self.place
        headers = {"Retry-After": str(self.retry_after)} if self.retry_after else None
        answer = JsonResponse(body, status=self.status, headers=headers)
        # `log_once` has logged the mistake; Django would log and mail an error for each message.
        answer._has_been_logged = self.status >= HTTPStatus.INTERNAL_SERVER_ERROR  # type: ignore[attr-defined]
        return answer
