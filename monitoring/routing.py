"""The console's WebSocket, and the turns of its open pages' requests."""

from django.urls import path

from monitoring.consumers import live
from monitoring.turns import InTurn

__all__ = ["InTurn", "websocket_urlpatterns"]

websocket_urlpatterns = [path("ws/live/", live)]  # type: ignore[arg-type]  # no view
