"""The console under /ops/, in every language once more, and pages of the project's own beside it."""

from django.conf.urls.i18n import i18n_patterns
from django.http import HttpRequest, HttpResponse
from django.urls import include, path


def own(request: HttpRequest) -> HttpResponse:
    return HttpResponse("of the project's own")


urlpatterns = [
    path("", own),
    path("enter/", own, name="enter"),
    path("ops/", include("monitoring.urls")),
    path("hooks/in/", include("orchestrator.webhooks.urls")),
    *i18n_patterns(path("desk/", include("monitoring.urls", namespace="desk"))),
]
