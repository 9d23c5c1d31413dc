"""Every page in Japanese: nothing of ours is left in English, while what definitions say stays as it is."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.utils import translation

from orchestrator.models import Definition
from tests.apps.every_construct.desk import inquiry
from tests.apps.every_construct.processes import Inquiry
from tests.browser.samples import orders
from tests.browser.test_pages import addresses
from tests.services.bulk import begun, frozen
from tests.services.client import Client

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.once,
    pytest.mark.usefixtures("helpdesk"),
]

LISTED = Path(__file__).parents[2] / "monitoring/locale/ja/LC_MESSAGES/django.po"
UNREAD = ("script", "style", "code", "pre", "ins", "del", "textarea", "option")
"""What stands in these may be data, or is not read."""

READ = ("title", "aria-label", "placeholder", "data-label")
PHRASE = re.compile(r"[A-Z][a-z]+|[a-z]+( [a-z]+)+")
"""Not a single small word, which may be the name of a field."""


class Texts(HTMLParser):
    """The texts of a page that people read, or have read to them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.inside: list[str] = []
        # A long name is one text, wherever it may be broken.
        self.feed(page.replace("<wbr>", ""))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {value or "" for name, value in attrs if name in READ}
        if tag in UNREAD:
            self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.inside and self.inside[-1] == tag:
            self.inside.pop()

    def handle_data(self, data: str) -> None:
        if not self.inside:
            self.found.add(" ".join(data.split()))


def ours() -> set[str]:
    """The texts that have a translation which differs."""
    texts = re.findall(r'^msgid(?:_plural)? "(.+)"$', LISTED.read_text(), re.MULTILINE)
    with translation.override("ja"):
        return {
            one
            for one in texts
            if PHRASE.match(one) and translation.gettext(one) != one
        }


def theirs() -> set[str]:
    """The words that definitions bring with them."""
    graphs = Definition.objects.values_list("graph", flat=True)
    return {node["label"] for graph in graphs for node in graph["nodes"]}


def pages(operator: User) -> list[str]:
    placed = orders()
    frozen(begun(operator, {"status": "failed"}, 1))
    inquiries = (inquiry(), inquiry("T-2", trouble="text"), inquiry("T-3", pages=5))
    found = addresses(placed)
    for process in inquiries:
        parts = ("", "?step=read_page", "messages/", "repair/")
        found += [f"/processes/{process.pk}/{part}" for part in parts]
    return [*found, f"/definitions/{Inquiry.name}/", "/decisions/", "/views/"]


def test_no_page_shows_ours_in_english(operating: Client, operator: User) -> None:
    looked_at = pages(operator)
    left = ours() - theirs()
    assert len(left) > 500

    found = {}
    for address in looked_at:
        answer = operating.get(address, headers={"Accept-Language": "ja"})
        text = answer.content.decode()
        assert '<html lang="ja"' in text, address
        if english := Texts(text).found & left:
            found[address] = english

    assert found == {}
