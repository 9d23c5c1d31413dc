"""The console's WebSocket."""

from django.urls import path

from monitoring.consumers import LiveConsumer

websocket_urlpatterns = [path("ws/live/", LiveConsumer.as_asgi())]
