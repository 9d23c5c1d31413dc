"""All that a page has been sent, to look in it for what it must not have been."""

from contextlib import suppress
from html import unescape

from playwright.sync_api import Error, Page, Response, WebSocket


class Received:
    """What a page is sent: by its socket, and as answers."""

    def __init__(self, page: Page) -> None:
        self.frames = list[str]()
        self.texts = list[str]()
        page.on("websocket", self._socket)
        page.on("response", self._answer)

    def _socket(self, socket: WebSocket) -> None:
        socket.on("framereceived", lambda payload: self.frames.append(str(payload)))

    def _answer(self, response: Response) -> None:
        kind = response.headers.get("content-type", "")
        if "html" in kind and response.status == 200:
            with suppress(Error):  # the page has gone on to another before it was read
                self.texts.append(response.text())

    def with_any(self, *words: str) -> list[str]:
        """What of it has one of these words."""
        every = [*self.frames, *map(unescape, self.texts)]
        return [text[:200] for text in every if any(word in text for word in words)]
