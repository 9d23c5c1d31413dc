"""docs/operating.md says of compose.yaml, Containerfile and the units of systemd what stands in them."""

import re
from pathlib import Path

from tests.services import deployment
from tests.services.cases import cases
from tests.services.deployment import ROOT, UNITS

PAGE = (ROOT / "docs" / "operating.md").read_text()
GIVEN = {"POSTGRES_PASSWORD": "one", "PROCESSION_SECRET_KEY": "another"}


def part(title: str) -> str:
    """Return what stands under a title."""
    return PAGE.split(f"### {title}\n")[1].split("\n### ")[0]


def test_the_page_names_every_service_of_compose() -> None:
    told = re.findall(r"^\| `(\w+)` \|", part("In containers"), re.MULTILINE)

    assert told == list(deployment.compose(GIVEN)["services"])


def test_the_page_names_every_secret_that_has_no_default() -> None:
    asked = re.findall(r"\$\{(\w+):\?", (ROOT / "compose.yaml").read_text())

    assert set(asked) == set(re.findall(r"([A-Z_]+)=%s", part("In containers")))


def test_the_page_tells_who_containers_run_as_and_how_long_they_have_to_end() -> None:
    [user] = re.findall(r"^USER (\d+):", deployment.CONTAINERFILE, re.MULTILINE)
    work = deployment.compose(GIVEN)["services"]["work"]
    seconds = work["stop_grace_period"].removesuffix("s")

    assert f"run as user {user}," in part("In containers")
    assert f"has {seconds} s to end" in part("In containers")


@cases("unit", *UNITS)
def test_the_page_makes_what_a_unit_expects(unit: Path) -> None:
    """Its folder, its user, its variables; and the page starts it, or something that starts it does."""
    said, page = deployment.unit(unit), part("Under systemd")

    for name in ("WorkingDirectory", "User", "StateDirectory"):
        assert said.get(name, "") in page
    for name, value in deployment.lines(unit):
        if name == "EnvironmentFile":
            assert value.removeprefix("-").replace("%i", "") in page
    wanted_by_others = any(
        unit.name in line for other in UNITS for line in other.read_text().splitlines()
    )
    assert unit.name.replace("@", "@default") in page or wanted_by_others
