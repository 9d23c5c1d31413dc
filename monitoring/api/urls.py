"""The addresses for programs: those of the console, below `api/`."""

from django.urls import path

from monitoring.api import acting, reading  # noqa: F401  these modules declare the routes
from monitoring.api.calls import api_patterns
from monitoring.api.document import openapi_json, try_out

urlpatterns = [
    path("openapi.json", openapi_json, name="api-document"),
    path("docs/", try_out, name="api-docs"),
    *api_patterns(),
]
