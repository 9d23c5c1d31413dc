"""A small OpenID provider on loopback: the code flow with PKCE, whose answers a test can make wrong, one at a time."""

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from secrets import token_urlsafe
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt

CLIENT_ID, CLIENT_SECRET = "procession", "secret-of-the-client"
KEY = "a key of the provider that has enough characters"
ABSENT = "absent"
"""In the place of a value that is to be missing."""
TRICKLE = 1_000_000
"""More lines than the buffers of a connection hold."""
PATHS = {
    "authorization_endpoint": "/authorize",
    "token_endpoint": "/token",
    "userinfo_endpoint": "/userinfo",
    "jwks_uri": "/keys",
}


@dataclass
class Provider:
    """What the provider knows, and what it does wrong.

    Args:
        port: where it listens.
        claims: of the person who signs in next.
        broken: replaces parts of an answer: `discovery`, `id_token`, `tokens`, `userinfo` or `error` of the
            authorization. `raw` has whole bodies by path, `status` is that of the answer with the tokens, and `signed`
            has the key and the algorithm of the ID token.
        paths: of the requests that have come, and their headers in `authorizations`.
        held: requests for the keys wait until it is set, and each tells `waiting` that it does.
        trickled: lines of an answer that never comes to its headers, up to `TRICKLE`.
    """

    port: int
    claims: dict[str, Any] = field(default_factory=lambda: {"sub": "1"})
    broken: dict[str, Any] = field(default_factory=dict)
    asked: list[dict[str, str]] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    silent: bool = False
    trickles: bool = False
    trickled: int = 0
    paths: list[str] = field(default_factory=list)
    authorizations: list[str | None] = field(default_factory=list)
    held: threading.Event = field(default_factory=threading.Event)
    waiting: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def discovery(self) -> dict[str, Any]:
        addresses = {name: self.issuer + path for name, path in PATHS.items()}
        found: dict[str, Any] = {
            "issuer": self.issuer,
            "scopes_supported": ["openid", "groups"],
        }
        return {**found, **addresses, **self.broken.get("discovery", {})}

    def authorize(self, asked: dict[str, str]) -> str:
        """Return where the browser goes after the person has agreed, or what else is to happen."""
        self.asked.append(asked)
        found = {"state": asked["state"]}
        if error := self.broken.get("error"):
            found["error"] = error
        else:
            assert asked["client_id"] == CLIENT_ID
            assert asked["response_type"] == "code"
            assert asked["code_challenge_method"] == "S256"
            found["code"] = token_urlsafe()
            self.codes[found["code"]] = asked
        return f"{asked['redirect_uri']}?{urlencode(found)}"

    def tokens(self, form: dict[str, str]) -> dict[str, Any] | None:
        """Return the answer to a code; None for a wrong one, or one that was used."""
        asked = self.codes.pop(form["code"], None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if asked is None or (form["client_id"], form["client_secret"]) != (
            CLIENT_ID,
            CLIENT_SECRET,
        ):
            return None
        if challenge != asked["code_challenge"]:
            return None
        if form["redirect_uri"] != asked["redirect_uri"]:
            return None
        now = int(time.time())
        about = {"iss": self.issuer, "aud": CLIENT_ID, "iat": now, "exp": now + 300}
        about |= {"nonce": asked["nonce"], **self.claims}
        about |= self.broken.get("id_token", {})
        said = {name: value for name, value in about.items() if value != ABSENT}
        key, algorithm = self.broken.get("signed", (KEY, "HS256"))
        found = {"id_token": jwt.encode(said, key, algorithm), "access_token": "t"}
        found |= self.broken.get("tokens", {})
        return {name: value for name, value in found.items() if value != ABSENT}


class _Handler(BaseHTTPRequestHandler):
    provider: Provider

    def do_GET(self) -> None:
        provider, parts = self.provider, urlsplit(self.path)
        provider.paths.append(parts.path)
        provider.authorizations.append(self.headers["Authorization"])
        if provider.silent:
            self.close_connection = True
        elif provider.trickles:
            self._trickle()
        elif parts.path == "/.well-known/openid-configuration":
            self._say(provider.discovery())
        elif parts.path == "/authorize":
            self.send_response(302)
            self.send_header("Location", provider.authorize(_single(parts.query)))
            self.end_headers()
        elif parts.path == "/userinfo":
            self._say(provider.claims | provider.broken.get("userinfo", {}))
        else:
            provider.waiting.release()
            provider.held.wait(60)
            self._say({"keys": []})

    def do_POST(self) -> None:
        self.provider.paths.append(urlsplit(self.path).path)
        size = int(self.headers["Content-Length"])
        form = _single(self.rfile.read(size).decode())
        found = self.provider.tokens(form)
        status = self.provider.broken.get("status", 200 if found else 400)
        self._say(found or {"error": "invalid_grant"}, status)

    def _trickle(self) -> None:
        with suppress(OSError):
            while self.provider.trickled < TRICKLE:
                self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)
                self.provider.trickled += 1000
            self._say(self.provider.discovery())

    def _say(self, found: dict[str, Any], status: int = 200) -> None:
        raw = self.provider.broken.get("raw", {})
        body = raw.get(self.path, json.dumps(found).encode())
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _single(query: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(query).items()}


@contextmanager
def serving() -> Iterator[Provider]:
    """Have a provider answer on loopback, in a thread."""
    handler = type("Handler", (_Handler,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        provider = Provider(server.server_port)
        handler.provider = provider  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield provider
        finally:
            server.shutdown()
            thread.join()
