"""The addresses of the bundled project. Each one needs a signed-in user unless its view says otherwise."""

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.contrib.auth.decorators import login_not_required, user_passes_test
from django.contrib.auth.models import AnonymousUser, User
from django.contrib.auth.views import LogoutView
from django.core.exceptions import ImproperlyConfigured, PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.templatetags.static import static
from django.urls import URLPattern, include, path
from django.views.defaults import server_error
from django.views.generic import RedirectView
from django_rq.urls import urlpatterns as dashboard
from rq.exceptions import NoSuchJobError

from orchestrator.missing_tables import MIGRATE, lacks_tables
from orchestrator.sign_in import SignInByLinkView, SignInView


def is_superuser(user: User | AnonymousUser) -> bool:
    """Whether a user may see what superusers alone may; False sends to the sign-in page.

    Raises:
        PermissionDenied: a signed-in user may not. The sign-in page would send that user back, and so on.
    """
    if user.is_authenticated and not (user.is_active and user.is_superuser):
        raise PermissionDenied
    return user.is_authenticated


superusers_only = user_passes_test(is_superuser)


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

to_sign_in = RedirectView.as_view(pattern_name="sign-in", query_string=True)


@login_not_required
def sign_in_to_admin(request: HttpRequest) -> HttpResponseBase:
    """Send to the sign-in page, which the administration shares: it limits failures and reports them.

    Raises:
        PermissionDenied: a signed-in user may not see the administration.
    """
    if request.user.is_authenticated and not admin.site.has_permission(request):
        raise PermissionDenied
    return to_sign_in(request)


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
    path("admin/login/", sign_in_to_admin),
    path("admin/", admin.site.urls),
    path("", include("monitoring.urls")),
]
