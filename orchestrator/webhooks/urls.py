from django.urls import path

from orchestrator.webhooks.views import WebhookView

app_name = "webhooks"
urlpatterns = [path("<str:source>/", WebhookView.as_view(), name="receive")]
