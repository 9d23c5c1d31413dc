"""The style of exported pictures shares the console's colours."""

import re
from pathlib import Path

import pytest
from django.conf import settings

from monitoring.diagrams import export_style
from monitoring.diagrams.drawing import Drawing
from tests.unit.test_diagram_workflows import every_pattern

TOKENS = Path(settings.BASE_DIR, "static/monitoring/tokens.css")


@pytest.fixture(autouse=True)
def read_anew() -> None:
    export_style.export_style.cache_clear()


def test_an_exported_picture_carries_its_style_in_plain_colours() -> None:
    picture = Drawing(every_pattern()).standalone()
    style = picture.partition("<style>")[2].partition("</style>")[0]

    assert ".step.is-failed &gt; path:first-of-type { fill: #fdebec;" in style
    for word in ("var(", "light-dark", "/*", "@"):
        assert word not in style


def test_every_colour_of_an_exported_picture_is_a_light_colour_of_the_console() -> None:
    tokens = export_style.TOKEN.findall(TOKENS.read_text())
    light = {light for _, light, _ in tokens if light}

    used = set(re.findall(r"#[0-9a-f]+", export_style.export_style()))

    assert len(used) > 10
    assert used <= light


def test_no_unknown_token_is_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = "a { fill: var(--lost) }"
    sheets = {"tokens": ":root { --ink: #000; }", "picture": picture, "states": ""}
    monkeypatch.setattr(export_style, "_css", sheets.__getitem__)

    with pytest.raises(KeyError, match="lost"):
        export_style.export_style()
