"""The web server's way in: pages over HTTP, live changes over WebSocket."""

import os

from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "orchestrator.settings")
if not settings.configured:
    os.environ["PROCESSION_WEB"] = "1"

from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from channels.sessions import SessionMiddlewareStack
from django.core.asgi import get_asgi_application

http = get_asgi_application()  # sets Django up, which what follows relies on

from monitoring.routing import InTurn, websocket_urlpatterns  # noqa: E402

application = ProtocolTypeRouter(
    {
        "http": InTurn(http),
        "websocket": AllowedHostsOriginValidator(
            SessionMiddlewareStack(URLRouter(websocket_urlpatterns))
        ),
    }
)
