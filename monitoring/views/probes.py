"""Probes for machines: liveness, readiness and metrics."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from monitoring.base.access import may_view
from monitoring.probes.metrics import exposition
from monitoring.probes.readiness import PARTS, readiness
from orchestrator.configuration.site_settings import metrics_token


@require_safe
@login_not_required
@never_cache
def livez(request: HttpRequest) -> HttpResponse:
    """Answer without any query: the process lives."""
    return JsonResponse({"live": True})


@require_safe
@login_not_required
@never_cache
def readyz(request: HttpRequest) -> HttpResponse:
    """Say which parts are up: 200 if all are, else 503. `?exclude=workers` excludes one, and may be repeated."""
    besides = set(request.GET.getlist("exclude"))
    if not besides <= set(PARTS):
        return JsonResponse({"exclude": PARTS}, status=400)
    found = readiness(besides)
    parts = {part: "up" if up else "down" for part, up in found.items()}
    ready = all(found.values())
    answer = JsonResponse({"ready": ready, **parts}, status=200 if ready else 503)
    # The missing part was logged once, with the reason; Django would log an error for each probe.
    answer._has_been_logged = True  # type: ignore[attr-defined]
    return answer


@require_safe
@login_not_required
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """The metrics, for requests with the token of the setting, or users who may view processes."""
    if not _brings_token(request) and not may_view(request.user):
        if request.user.is_authenticated:
            return HttpResponse(status=403)
        return HttpResponse(status=401, headers={"WWW-Authenticate": "Bearer"})
    text, content_type = exposition(request.headers.get("Accept", ""))
    return HttpResponse(text, content_type=content_type)


def _brings_token(request: HttpRequest) -> bool:
    token = metrics_token()
    given = request.headers.get("Authorization", "")
    return bool(token) and constant_time_compare(given, f"Bearer {token}")
