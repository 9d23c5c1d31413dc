"""What browsers send with the sockets of open pages."""

from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from tests.conftest import of

HERE = "http://127.0.0.1"


async def headers_of(
    user: User | None, origin: str = HERE
) -> list[tuple[bytes, bytes]]:
    """Return what the browser of somebody, or of nobody, sends from a page of `origin`."""
    headers = [(b"host", b"127.0.0.1"), (b"origin", origin.encode())]
    if user is not None:
        cookies = (await sync_to_async(of)(user)).cookies
        pairs = "; ".join(f"{name}={one.value}" for name, one in cookies.items())
        headers.append((b"cookie", pairs.encode()))
    return headers
