"""S7 in a browser: what a repair says before it is applied, when it is refused, what stays of it, and by whom."""

from __future__ import annotations

import json
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from orchestrator import Permanent, start_process
from orchestrator.models import OperatorAction, ProcessInstance, Repair
from orchestrator.testing import failing, run
from tests.apps.every_construct.fixtures import helpdesk
from tests.apps.every_construct.processes import Lattice, work
from tests.apps.process_managers.desk import place, tell, underway
from tests.apps.process_managers.fixtures import parcels
from tests.apps.process_managers.messages import ParcelScanned
from tests.services.site import live_site

__all__ = ["helpdesk", "live_site", "parcels"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.once,
    pytest.mark.usefixtures("helpdesk", "parcels"),
]

SEEN = """element => {
    const canvas = new OffscreenCanvas(1, 1).getContext("2d");
    canvas.fillStyle = getComputedStyle(element).color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
}"""
"""The red, green and blue of a text."""


def repairing(page: Page, process: ProcessInstance) -> None:
    page.goto(f"/processes/{process.pk}/repair/")
    expect(page.locator(".repairing")).to_contain_text("Repair mode")


def staged(page: Page, number: int) -> None:
    expect(page.locator("#summary .staged li")).to_have_count(number)


def noted(page: Page, process: ProcessInstance, note: str, number: int = 1) -> None:
    """Stage other data."""
    page.fill("#data-value", json.dumps({**process.data, "note": note}))
    page.click("form:has(#data-value) button")
    staged(page, number)


def applied(page: Page, reason: str) -> None:
    page.fill("#apply-reason", reason)
    page.click("#apply button[type=submit]")


def test_s7_2_the_summary_has_each_edit_its_difference_and_in_red_what_runs_twice(
    signed_in: Page,
) -> None:
    parcel = underway()
    tell(parcel, ParcelScanned("P-1", "Osaka"))
    repairing(signed_in, parcel)
    noted(signed_in, parcel, "by hand")
    signed_in.select_option("#event-target", "ParcelScanned")
    signed_in.fill("#event-value", '{"parcel_id": "P-1", "place": "Kobe"}')
    signed_in.click("form:has(#event-value) button")
    staged(signed_in, 2)

    summary = signed_in.locator("#summary")
    expect(summary.locator(".staged code")).to_have_text(["ParcelScanned"])
    note = summary.locator(".change", has_text="note")
    expect(note.locator("ins")).to_have_text("by hand")
    warned = summary.locator(".effects p.wrong")
    expect(warned).to_contain_text("CountScan")
    expect(warned).to_contain_text("not idempotent")
    red, green, blue = warned.evaluate(SEEN)
    assert red > 1.5 * max(green, blue)
    assert not OperatorAction.objects.exists()


def test_s7_4_where_the_definition_wants_two_another_person_applies(
    signed_in: Page, other: Page
) -> None:
    process = stuck()
    repairing(signed_in, process)
    signed_in.goto(f"/processes/{process.pk}/repair/?step=work_0_0")
    signed_in.fill(".visit textarea", "1")
    signed_in.click(".visit form button")
    staged(signed_in, 1)
    propose = signed_in.locator("#apply button[type=submit]")
    expect(propose).to_have_text("Propose")
    expect(signed_in.locator("#apply-why")).to_contain_text("A second person")
    applied(signed_in, "it was counted by hand")
    repairing(signed_in, process)
    own = signed_in.locator("#summary")
    expect(own).to_contain_text("Proposed by operator")
    expect(own.get_by_role("button", name="Apply all")).to_be_disabled()
    expect(own).to_contain_text("Whoever has proposed it does not apply it.")

    repairing(other, process)
    proposal = other.locator(f"#proposal-{Repair.objects.get().pk}")
    expect(proposal).to_contain_text("it was counted by hand")
    proposal.locator("textarea").fill("so it is")
    proposal.get_by_role("button", name="Apply all").click()
    other.wait_for_url(f"**/processes/{process.pk}/")
    expect(other.locator("#history")).to_contain_text("by colleague")
    run()
    process.refresh_from_db()
    assert process.status == "completed"


def stuck() -> ProcessInstance:
    """A process of a definition that wants two people for a repair; its first step has failed for good."""
    with failing(work, Permanent("no number")):
        receipt = start_process(Lattice, Lattice.Input(2, 1))
        run()
    process = ProcessInstance.objects.get(pk=UUID(str(receipt.process_id)))
    assert process.status == "failed"
    return process


def test_s7_5_what_cannot_be_chosen_says_why_and_a_mistake_stands_at_its_field(
    signed_in: Page, operator: User
) -> None:
    parcel = place()
    repairing(signed_in, parcel)
    for step, why in (
        ("Ordered", "processes start there"),
        ("Packing", "it stands there now"),
    ):
        option = signed_in.locator(f"#move-target option[value={step}]")
        expect(option).to_be_disabled()
        expect(option).to_contain_text(why)
    expect(signed_in.locator("#move-target")).not_to_have_value("Ordered")

    wrong = json.dumps({**parcel.data, "courier": "nobody"})
    for field, written, path in (
        ("data", wrong, "courier"),
        ("event", '{"weight": "3"}', "weight"),
    ):
        if field == "event":
            signed_in.select_option("#event-target", "ParcelPacked")
        signed_in.fill(f"#{field}-value", written)
        signed_in.click(f"form:has(#{field}-value) button")

        box = signed_in.locator(f"#{field}-value")
        expect(box).to_have_attribute("aria-invalid", "true")
        expect(box).to_have_attribute("aria-describedby", f"{field}-value-wrong")
        expect(box).to_have_value(written)
        said = signed_in.locator(f"#{field}-value-wrong")
        expect(said.locator("code")).to_have_text(path)
        over, under = box.bounding_box(), said.bounding_box()
        assert over
        assert under
        assert 0 <= under["y"] - (over["y"] + over["height"]) < 40
        expect(signed_in.locator("#summary")).to_contain_text("Nothing is staged.")
    assert not Repair.objects.exists()
