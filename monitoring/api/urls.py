"""The addresses for programs: those of the console, below `api/`."""

from django.urls import path

from monitoring.api import acting, reading  # noqa: F401  these modules declare the routes
from monitoring.api.calls import patterns
from monitoring.api.document import as_json, try_out

urlpatterns = [
    path("openapi.json", as_json, name="api-document"),
    path("docs/", try_out, name="api-docs"),
    *patterns(),
]
