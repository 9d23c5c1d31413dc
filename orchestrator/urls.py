"""The addresses of the bundled project. Each one needs a signed-in user unless its view says otherwise."""

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
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


def superuser_path(pattern: URLPattern) -> URLPattern:
    """Return the path of a view for the staff as one for superusers alone."""
    view = superusers_only(hide_errors(pattern.callback))
    return URLPattern(pattern.pattern, view, pattern.default_args, pattern.name)


def hide_errors(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Make a view of RQ's dashboard answer 404 where it raises an error for an unknown number or name."""

    @wraps(view)
    def found(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except (LookupError, ValueError, NoSuchJobError, ImproperlyConfigured) as error:
            raise Http404 from error

    return found


def server_failure(request: HttpRequest) -> HttpResponse:
    """Answer a request whose view raised an error, which Django has logged."""
    error = sys.exc_info()[1]
    if error is not None and lacks_tables(error):
        return HttpResponse(MIGRATE, "text/plain", status=503)
    return server_error(request)


handler500 = server_failure

# Browsers ask for this where a page names no icon, as in Django's administration.
icon = login_not_required(RedirectView.as_view(url=static("monitoring/icon.svg")))

# The administration shares the sign-in page, which limits failures and reports them.
to_sign_in = login_not_required(
    RedirectView.as_view(pattern_name="sign-in", query_string=True)
)

more = (
    [path("", include("orchestrator.sign_in.urls"))]
    if getattr(settings, "PROCESSION_SSO_NAME", "")
    or getattr(settings, "PROCESSION_SECOND_FACTOR", "")
    else []
)

urlpatterns = [
    *more,
    path("favicon.ico", icon),
    path("sign-in/", SignInView.as_view(), name="sign-in"),
    path(
        "sign-in/link/<str:token>/", SignInByLinkView.as_view(), name="sign-in-by-link"
    ),
    path("sign-out/", LogoutView.as_view(), name="logout"),
    path("hooks/", include("orchestrator.webhooks.urls")),
    path(
        "admin/rq/",
        include(([superuser_path(pattern) for pattern in dashboard], "django_rq")),
    ),
    path("admin/login/", to_sign_in),
    path("admin/", admin.site.urls),
    path("", include("monitoring.urls")),
]
