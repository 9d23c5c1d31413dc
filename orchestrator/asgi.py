"""The ASGI application: pages over HTTP, live changes over WebSocket."""

import logging
import os

from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "orchestrator.settings")
if not settings.configured:
    os.environ["PROCESSION_WEB"] = "1"

from django.core.asgi import get_asgi_application

http = get_asgi_application()  # sets Django up, before the imports below

from monitoring.routing import with_live_pages  # noqa: E402
from orchestrator.serving.bodies import with_bounded_bodies  # noqa: E402
from orchestrator.sign_in import hide_tokens  # noqa: E402

hide_tokens(logging.getLogger("uvicorn.access"))

application = with_bounded_bodies(with_live_pages(http))
