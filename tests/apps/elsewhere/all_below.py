from django.urls import include, path

urlpatterns = [path("ops/", include("orchestrator.urls"))]
