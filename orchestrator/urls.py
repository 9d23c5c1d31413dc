"""The addresses of the bundled project. Every one needs a signed-in user unless its view says otherwise."""

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import admin
from django.contrib.auth.decorators import login_not_required, user_passes_test
from django.contrib.auth.views import LogoutView
from django.core.exceptions import ImproperlyConfigured
from django.http import Http404, HttpRequest, HttpResponse
from django.templatetags.static import static
from django.urls import URLPattern, include, path
from django.views.defaults import server_error
from django.views.generic import RedirectView
from django_rq.urls import urlpatterns as dashboard
from rq.exceptions import NoSuchJobError

from orchestrator.missing_tables import MIGRATE, lacks_tables
from orchestrator.sign_in import SignInByLinkView, SignInView

superusers_only = user_passes_test(lambda user: user.is_active and user.is_superuser)


def for_superusers(pattern: URLPattern) -> URLPattern:
    """Return the address of a view that lets any member of the staff in as one for superusers."""
    view = superusers_only(finding(pattern.callback))
    return URLPattern(pattern.pattern, view, pattern.default_args, pattern.name)


def finding(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Let a view of RQ's dashboard say that it finds nothing, where it ends in an error for a number or a name."""

    @wraps(view)
    def found(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except (LookupError, ValueError, NoSuchJobError, ImproperlyConfigured) as error:
            raise Http404 from error

    return found


def failed(request: HttpRequest) -> HttpResponse:
    """Answer what no view has answered for an error; the log has it."""
    error = sys.exc_info()[1]
    if error is not None and lacks_tables(error):
        return HttpResponse(MIGRATE, "text/plain", status=503)
    return server_error(request)


handler500 = failed

# What browsers ask for where a page names no icon, as those of the administration do not.
icon = login_not_required(RedirectView.as_view(url=static("monitoring/icon.svg")))

# One way in, which is throttled and tells of failures, also for the administration.
to_sign_in = login_not_required(
    RedirectView.as_view(pattern_name="sign-in", query_string=True)
)

urlpatterns = [
    path("favicon.ico", icon),
    path("sign-in/", SignInView.as_view(), name="sign-in"),
    path(
        "sign-in/link/<str:token>/", SignInByLinkView.as_view(), name="sign-in-by-link"
    ),
    path("sign-out/", LogoutView.as_view(), name="logout"),
    path("hooks/", include("orchestrator.webhooks.urls")),
    path(
        "admin/rq/",
        include(([for_superusers(pattern) for pattern in dashboard], "django_rq")),
    ),
    path("admin/login/", to_sign_in),
    path("admin/", admin.site.urls),
    path("", include("monitoring.urls")),
]
