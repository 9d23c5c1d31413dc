"""The check of CSS and JavaScript finds what is planted, and nothing in what the console consists of."""

from pathlib import Path

import pytest

from tests.lint.__main__ import ROOT, layout_mistakes, main, mistakes
from tests.lint.formatting import WIDTH, formatted
from tests.services.cases import cases

pytestmark = pytest.mark.once

WHOLE = "const one = 1;\nexport const two = 2;\nfetchAll(one);\n\nfunction fetchAll(number) {\n  return number;\n}\n"

PLANTED_IN_SCRIPTS = {
    "const = 3;": "cannot be read",
    "let unused = 1;": "unused is not used",
    "document.add((unused) => 1);": "unused is not used",
    "document.add(({ kept: { unused } }) => 1);": "unused is not used",
    "document.ad(misspelt);": "misspelt is not known",
    'import { paint } from "./other.js";': "paint is not used",
    'import { lost } from "./other.js"; lost();': "other.js does not export lost",
    'import "./gone.js";': "gone.js is not there",
    "var old = 1; old.go();": "var: say const or let",
    "document.go(1 == 2);": "== converts its operands",
    "document.go(1 != 2);": "!= converts its operands",
    "console.log(1);": "console is left from debugging",
    "debugger;": "debugger; is left from debugging",
    'document.body.innerHTML = "";': "innerHTML makes markup from text",
    'eval("1");': "is not known",
    "document.go( 1 );": "not formatted",
    f"// {'x' * WIDTH}": "longer than 120",
}

PLANTED_IN_SHEETS = {
    "a { color: red": "cannot be read",
    "a { color: ; }": "color has no value",
    "a {\n  color: red;\n  color: blue;\n}": "color is said twice",
    "a {\n  color: var(--lost);\n}": "--lost is not there",
    ":root {\n  --idle: 1px;\n}": "--idle is not used",
    "a{color:red}": "not formatted",
    f"/* {'x' * WIDTH} */": "longer than 120",
}


def said(folder: Path, name: str, text: str) -> list[str]:
    (folder / "other.js").write_text("export function paint() {}\n")
    path = folder / name
    path.write_text(text)
    return [one.what for _, one in mistakes([path])]


@pytest.mark.parametrize(
    ("name", "planted", "refusal"),
    [
        *(("one.js", *mistake) for mistake in PLANTED_IN_SCRIPTS.items()),
        *(("one.css", *mistake) for mistake in PLANTED_IN_SHEETS.items()),
    ],
)
def test_each_planted_mistake_is_found(
    name: str, planted: str, refusal: str, tmp_path: Path
) -> None:
    found = said(tmp_path, name, f"{planted}\n")

    assert any(refusal in one for one in found), found


def test_a_script_without_mistakes_is_not_refused(tmp_path: Path) -> None:
    assert said(tmp_path, "one.js", WHOLE) == []


def test_the_line_of_a_mistake_is_told(tmp_path: Path) -> None:
    path = tmp_path / "one.js"
    path.write_text(f"{WHOLE}misspelt();\n")

    assert [one.line for _, one in mistakes([path])] == [8]


@cases("suffix", ".css", ".js")
def test_what_was_formatted_is_not_formatted_again(suffix: str) -> None:
    for path in (ROOT / "static" / "monitoring").glob(f"*{suffix}"):
        text = path.read_text()

        assert formatted(text, suffix) == text
        assert list(layout_mistakes(text, suffix)) == []


def test_the_console_has_no_mistakes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert capsys.readouterr().out.startswith("0 mistakes in ")


def test_no_line_of_a_template_is_too_long() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in (ROOT / "templates").rglob("*.html")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > WIDTH
    ]

    assert long == []
