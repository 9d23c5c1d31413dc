"""A browser without a window, which keeps cookies by their paths and tells every address that it is given."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from http.client import HTTPMessage
from http.cookiejar import Cookie, CookieJar
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urldefrag, urlencode, urljoin, urlsplit
from urllib.request import (
    HTTPCookieProcessor,
    HTTPRedirectHandler,
    Request,
    build_opener,
)

FOLLOWED = ("href", "src", "hx-get")
"""The attributes whose addresses a browser asks for by itself, or at a click."""
WITH_ADDRESS = ("Location", "Content-Location", "HX-Redirect", "HX-Location", "Link")
IN_CODE = re.compile(r"""["'`(](/[a-z][^"'`)\s]*)""")
"""An address in a script or a style sheet: after a quote or a bracket, with a letter after its /."""


@dataclass
class Answer:
    """What one request was answered with."""

    url: str
    status: int
    headers: HTTPMessage
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def media(self) -> str:
        return self.headers.get_content_type()

    def addresses(self) -> Iterator[str]:
        """Yield each address of headers, cookies and body; those of this host from their / on."""
        yield from (self.headers[name] for name in WITH_ADDRESS if name in self.headers)
        for cookie in self.headers.get_all("Set-Cookie") or []:
            yield from re.findall(r"(?i)path=([^;]*)", cookie)
        if self.media == "text/html":
            yield from (value for _, value in attributes(self.text))
        elif self.media == "application/json":
            yield from texts(json.loads(self.text))
        elif self.media in ("text/javascript", "text/css"):
            yield from IN_CODE.findall(self.text)
        if self.media.startswith("text/"):
            host = re.escape(urlsplit(self.url).netloc)
            yield from re.findall(rf"(?:https?|wss?)://{host}(/[^\s\"'<]*)", self.text)

    def links(self) -> Iterator[str]:
        """Yield the addresses that a browser would go to from here."""
        if location := self.headers.get("Location"):
            yield urljoin(self.url, location)
        if self.media == "text/html":
            for name, value in attributes(self.text):
                if name in FOLLOWED:
                    yield urldefrag(urljoin(self.url, value)).url


class _Attributes(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [(name, value) for name, value in attrs if value]


def attributes(html: str) -> list[tuple[str, str]]:
    """Return all attributes of a page that have a value."""
    parser = _Attributes()
    parser.feed(html)
    return parser.found


def texts(found: Any) -> Iterator[str]:
    """Yield each text of JSON, names included."""
    match found:
        case dict():
            yield from found
            for value in found.values():
                yield from texts(value)
        case list():
            for value in found:
                yield from texts(value)
        case str():
            yield found


class _Stay(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


class Wanderer:
    """Asks for pages of one host, with these headers each time."""

    def __init__(self, **headers: str) -> None:
        self.cookies = CookieJar()
        self._headers = headers
        self._opener = build_opener(HTTPCookieProcessor(self.cookies), _Stay)

    def get(self, url: str, **form: str) -> Answer:
        """Ask for a page, by POST where there is a form."""
        data = urlencode(form).encode() if form else None
        request = Request(url, data, self._headers | ({"Referer": url} if form else {}))  # noqa: S310
        try:
            answer = self._opener.open(request, timeout=60)
        except HTTPError as error:
            answer = error
        with answer:
            return Answer(url, answer.status, answer.headers, answer.read())

    def cookie(self, name: str) -> Cookie:
        [found] = (one for one in self.cookies if one.name == name)
        return found

    def walk(self, *first: str, kind: Callable[[str], str]) -> Iterator[Answer]:
        """Ask for these pages and for all that they lead to on their host, one of each kind of path."""
        ahead, met = list(first), set[str]()
        while ahead:
            url = ahead.pop(0)
            parts, of = urlsplit(url), kind(urlsplit(url).path)
            if parts[:2] == urlsplit(first[0])[:2] and of not in met:
                met.add(of)
                answer = self.get(url)
                yield answer
                ahead += answer.links()
