"""The console behind an address that takes everything, as those of some projects do."""

from django.urls import include, path, re_path

from tests.apps.elsewhere.urls import own

urlpatterns = [re_path("", own), path("ops/", include("monitoring.urls"))]
