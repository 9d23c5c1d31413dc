"""The addresses for programs: those of the console, below `api/`."""

from django.urls import path

from monitoring.api import actions, lists  # noqa: F401  these modules declare the routes
from monitoring.api.document import openapi_json, try_out
from monitoring.api.routes import api_patterns

urlpatterns = [
    path("openapi.json", openapi_json, name="api-document"),
    path("docs/", try_out, name="api-docs"),
    *api_patterns(),
]
