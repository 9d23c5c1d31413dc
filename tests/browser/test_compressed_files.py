"""Style sheets and scripts go out compressed to those who take that, whole and unchanged; pages do not."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPMessage
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.conf import settings

from tests.services.site import Site

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

FILES = [
    one for one in sorted(Path(settings.BASE_DIR, "static").rglob("*")) if one.is_file()
]
SHEET = Path(settings.BASE_DIR, "static/monitoring/console.css")


def asked(
    site: Site, path: str, headers: Mapping[str, str]
) -> tuple[int, HTTPMessage, bytes]:
    connection = HTTPConnection(urlsplit(site.url).netloc, timeout=30)
    connection.request("GET", path, headers=dict(headers))
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, answer.headers, body


def address(file: Path) -> str:
    return f"/static/{file.relative_to(settings.BASE_DIR / 'static')}"


def test_each_file_comes_as_it_lies_here(live_site: Site) -> None:
    smaller = 0
    for file in FILES:
        takes = {"Accept-Encoding": "br, gzip;q=0.5"}
        status, headers, body = asked(live_site, address(file), takes)
        assert status == 200, file
        assert int(headers["Content-Length"]) == len(body)
        if headers["Content-Encoding"] == "gzip":
            smaller += len(body) < file.stat().st_size
            body = gzip.decompress(body)
        assert body == file.read_bytes(), file

    assert smaller > len(FILES) / 2


@pytest.mark.parametrize("encoding", ["", "br", "gzip;q=0", "identity, gzip; q=0.0"])
def test_who_takes_no_gzip_gets_none(encoding: str, live_site: Site) -> None:
    _, headers, body = asked(live_site, address(SHEET), {"Accept-Encoding": encoding})

    assert headers["Content-Encoding"] is None
    assert headers["Vary"] == "Accept-Encoding"
    assert body == SHEET.read_bytes()


def test_what_a_browser_has_already_is_not_sent_again(live_site: Site) -> None:
    for encoding in ("gzip", ""):
        takes = {"Accept-Encoding": encoding}
        _, headers, _ = asked(live_site, address(SHEET), takes)
        tag = {"If-None-Match": headers["ETag"]}
        assert asked(live_site, address(SHEET), takes | tag)[0] == 304, encoding


def test_a_part_of_a_file_is_a_part_of_the_file(live_site: Site) -> None:
    wanted = {"Accept-Encoding": "gzip", "Range": "bytes=10-29"}
    status, headers, body = asked(live_site, address(SHEET), wanted)

    assert (status, headers["Content-Encoding"]) == (206, None)
    assert body == SHEET.read_bytes()[10:30]


def test_pages_are_not_compressed(live_site: Site) -> None:
    takes = {"Accept-Encoding": "gzip"}
    status, headers, body = asked(live_site, "/sign-in/", takes)

    assert (status, headers["Content-Encoding"]) == (200, None)
    assert body
