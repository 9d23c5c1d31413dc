from django.urls import path

from tests.apps.elsewhere.urls import own

urlpatterns = [path("", own, name="own")]
