"""S3.1, a diagram without colour: on paper, and to those who do not tell colours apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import combinations
from typing import Any
from uuid import UUID

import pytest
from playwright.sync_api import Page, expect

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from orchestrator import start_process
from orchestrator.engine import operations
from orchestrator.models import StepRun
from orchestrator.testing import run
from tests.apps.every_construct.fixtures import helpdesk
from tests.apps.every_construct.processes import Inquiry
from tests.services.asking import asked
from tests.services.site import live_site
from tests.services.words import words

__all__ = ["helpdesk", "live_site"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.once,
    pytest.mark.usefixtures("helpdesk"),
]

MEDIA: tuple[Any, ...] = ("screen", "print")
PAPERS = {"A4": 717, "Letter": 739, "A4 on its side": 1046, "A3 on its side": 1510}
"""Pixels between the margins."""

LOOKS = """() => {
    const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    const light = (colour) => {
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3)
            .map((value) => value / 255)
            .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
            .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
    };
    const contrast = (one, other) => {
        const [dark, bright] = [light(one), light(other)].sort((a, b) => a - b);
        return (bright + 0.05) / (dark + 0.05);
    };
    const card = getComputedStyle(document.querySelector(".card")).backgroundColor;
    return [...document.querySelectorAll(".picture :is(.step, .move)")].map((group) => {
        const line = getComputedStyle(group.querySelector("path:not(.clock)"));
        const marks = [...group.querySelectorAll(":scope > .mark path")]
            .filter((one) => one.checkVisibility()).map((one) => one.getAttribute("class"));
        return {
            kind: group.classList.contains("step") ? "step" : "move",
            classes: [...group.classList].filter((name) => name.startsWith("is-")),
            line: [line.strokeDasharray, line.strokeWidth, ...marks].join(" / "),
            contrast: contrast(line.stroke, card),
        };
    });
}"""

MEANINGS = {
    "step": words(
        "is-failed is-current is-done is-skipped is-not_taken is-possible is-idle"
    ),
    "move": ("is-done", "is-next", "is-possible", "is-off"),
}
"""What must be told apart, the first that a part has."""


@pytest.fixture
def shown(operator: object) -> list[UUID]:
    """Processes whose diagrams have every meaning of a step and of a way between steps."""
    order = place_order(Destination.EXTERNAL, "50 MWh").process_id
    inquiry = UUID(str(start_process(Inquiry, Inquiry.Input("T-1")).process_id))
    failing = start_process(Inquiry, Inquiry.Input("T-2", trouble="reply"))
    torn = UUID(str(failing.process_id))
    run()
    # What is asked is accepted: the way of a refusal is not taken then.
    for process in (inquiry, torn):
        question = open_step(process, "verdict")
        operations.decide(process, question, "accept", request=asked())
        run()
    reply = open_step(torn, "reply")  # which has failed
    operations.skip(torn, reply, '"sent by hand"', request=asked())
    run()
    return [order, torn, inquiry]


def open_step(process: UUID, node: str) -> UUID | int:
    return StepRun.objects.get(instance=process, node=node, finished_at=None).pk


Found = dict[str, dict[str, set[str]]]
"""By kind of part and by what it means: the lines and marks that say so, none of them a colour."""


def told(page: Page, shown: list[UUID], theme: Any) -> dict[str, Found]:
    """What is told on the screen and on paper."""
    found: dict[str, Found] = {
        medium: {kind: defaultdict(set) for kind in MEANINGS} for medium in MEDIA
    }
    for process in shown:
        page.goto(f"/processes/{process}/")
        for medium in MEDIA:
            page.emulate_media(media=medium, color_scheme=theme)
            for one in page.evaluate(LOOKS):
                if meaning := meant(one):
                    assert one["contrast"] >= 3, one
                    found[medium][one["kind"]][meaning].add(one["line"])
    return found


def meant(one: dict[str, Any]) -> str:
    return next((name for name in MEANINGS[one["kind"]] if name in one["classes"]), "")


def alike(found: Mapping[str, set[str]]) -> dict[tuple[str, str], set[str]]:
    """Meanings of which some parts look the same."""
    both: dict[tuple[str, str], set[str]] = defaultdict(set)
    for one, other in combinations(found, 2):
        if same := found[one] & found[other]:
            both[one, other] |= same
    return both


def test_s3_1_meaning_is_told_without_colour(checked: Page, shown: list[UUID]) -> None:
    for theme in ("light", "dark"):
        for found in told(checked, shown, theme).values():
            for kind, meanings in MEANINGS.items():
                assert set(found[kind]) == set(meanings)
                assert alike(found[kind]) == {}


def test_s3_1_a_diagram_fills_the_paper(signed_in: Page, shown: list[UUID]) -> None:
    signed_in.emulate_media(media="print")
    diagram = signed_in.locator(".of-diagram .diagram")
    picture = diagram.locator(".picture")
    for process in shown[:1] + shown[2:3]:
        signed_in.goto(f"/processes/{process}/")
        own = float(picture.get_attribute("width") or 0)
        for paper, width in PAPERS.items():
            signed_in.set_viewport_size({"width": width, "height": 1000})
            place, drawn = diagram.bounding_box(), picture.bounding_box()
            assert place
            assert drawn
            assert place["width"] > width * 0.9, paper
            assert drawn["width"] > min(own, width * 0.85) - 1, paper
            assert signed_in.evaluate("document.documentElement.scrollWidth") <= width
    # How often a loop was gone through stands there too.
    badge = signed_in.locator("#n_draft .badge.count text")
    expect(badge).to_be_visible()
    expect(badge).to_have_text("2\N{MULTIPLICATION SIGN}")


def test_s3_1_paper_is_light_and_has_no_button(
    checked: Page, shown: list[UUID]
) -> None:
    checked.goto(f"/processes/{shown[0]}/")
    checked.emulate_media(media="print")

    card = checked.locator(".card").first
    expect(card).to_have_css("background-color", "rgb(255, 255, 255)")
    for pressed in ("nav", ".top", "button", "#timeline"):
        expect(checked.locator(f"{pressed}:visible")).to_have_count(0)
