"""What the engine tells people: every template is translated, with the same values, and survives being stored."""

import ast
import copy
import inspect
import json
import pickle
import re
import shutil
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management.commands import makemessages
from django.utils import translation

from monitoring.base.translation import translate
from orchestrator import exceptions
from orchestrator.engine.change.incidents import fingerprint, named_error
from orchestrator.engine.change.secret_values import attach
from orchestrator.exceptions import (
    CorruptInput,
    OperationRefused,
    Permanent,
    ProcessionError,
    WorkerDied,
)
from orchestrator.text import (
    PLACE,
    Text,
    code_of,
    first_wording,
    pack_text,
    shortened,
    unpack_text,
)
from tests.services.cases import cases, words

ROOT = Path(__file__).parents[2]
CODE = [*(ROOT / "orchestrator").rglob("*.py"), *(ROOT / "monitoring").rglob("*.py")]

KINDS = [
    one
    for one in vars(exceptions).values()
    if inspect.isclass(one) and issubclass(one, ProcessionError)
]
ERRORS = {one.__name__ for one in KINDS if one.__init__ is ProcessionError.__init__} - {
    "LeaseLost"
}
"""Those that make a text of a template and values; that a lease is lost people are not told."""

WITHOUT_WORDS = words("""
    HandlerMissing LimitReached NoCase NotMigrated OperationRefused Permanent
    PermissionMissing Retry StaleRevision TimedOut UnknownDefinition WorkerDied
""")
"""Errors that say the first line of their docstrings, where they are raised without words."""


def calls() -> Iterator[tuple[str, str, int, Text]]:
    """The calls with a template: in which file, of what, how many values, and the text with its places unfilled."""
    for path in CODE:
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(
                    func=ast.Name(id=name),
                    args=[ast.Constant(value=str(said)), *values],
                    keywords=given,
                ) if name == "Text" or name in ERRORS:
                    constants = [o for o in given if isinstance(o.value, ast.Constant)]
                    named = {str(o.arg): ast.literal_eval(o.value) for o in constants}
                    found = dict.fromkeys(PLACE.findall(said))
                    places = [f"%({one})s" for one in found]
                    starred = any(isinstance(one, ast.Starred) for one in values)
                    number = len(places) if starred else len(values)
                    text = Text(said, *places, **named)
                    yield str(path.relative_to(ROOT)), name, number, text


def texts() -> list[Text]:
    """Every sentence that people are told, with its places unfilled."""
    written = [said for _, name, values, said in calls() if values or name == "Text"]
    polls = exceptions.Poll(timedelta(0), timedelta(0)).told
    plain = [getattr(exceptions, name)().told for name in WITHOUT_WORDS]
    return [*written, *plain, polls]


def templates() -> set[str]:
    return {one.template for one in texts()}


def test_every_template_is_translated_and_says_the_same_values() -> None:
    found = templates()
    with translation.override("ja"):
        japanese = {one: translation.gettext(one) for one in found}

    assert len(found) > 225
    untranslated = {one for one, said in japanese.items() if said == one}
    assert untranslated == {"%(error)s: %(why)s"}
    assert {
        one: said
        for one, said in japanese.items()
        if sorted(PLACE.findall(one)) != sorted(PLACE.findall(said))
        or "%(" in PLACE.sub("", said)
    } == {}


def test_a_template_is_given_its_values() -> None:
    """An error makes no text of words alone, as it cannot know whose they are."""
    wrong = {
        said
        for path, name, values, said in calls()
        if values not in (len(said.values), 0)
        or (name != "Text" and not values and "/engine/" in path)
    }
    plain = [ast.unparse(one) for one in words_of_bad_results() if not is_text(one)]
    assert (wrong, plain) == (set(), [])


def words_of_bad_results() -> Iterator[ast.expr]:
    """What the engine says of bad results; CorruptInput takes it as a text, after the name of the step."""
    for path in CODE:
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(func=ast.Name(id="CorruptInput"), args=[_, said]):
                    yield said


def is_text(said: ast.expr) -> bool:
    return isinstance(said, ast.Call) and ast.unparse(said.func) == "Text"


@pytest.mark.skipif(not shutil.which("xgettext"), reason="gettext is not installed")
def test_makemessages_finds_the_templates(tmp_path: Path) -> None:
    keywords = [f"--keyword={name}" for name in ("Text", *ERRORS)]
    options = [*makemessages.Command.xgettext_options, *keywords, "--no-wrap"]
    found = tmp_path / "found.pot"

    subprocess.run(
        ["xgettext", "-LPython", *options, f"-o{found}", *map(str, CODE)], check=True
    )

    listed = found.read_text()
    said = {said.template for *_, said in calls()}
    assert {one for one in said if f"msgid {json.dumps(one)}\n" not in listed} == set()


# One text


def in_japanese(text: str) -> str:
    with translation.override("ja"):
        return translate(text)


NO_DELIVERY = Text("there is no %(name)s with the key %(key)s", "delivery", "'A'")


def test_a_text_is_its_english() -> None:
    assert NO_DELIVERY == "there is no delivery with the key 'A'"
    assert type(str(NO_DELIVERY)) is str
    assert NO_DELIVERY.code == "there_is_no_with_key"


def test_a_text_within_a_text_is_translated_too() -> None:
    error = OperationRefused("no process takes %(type)s: %(why)s", "Paid", NO_DELIVERY)

    assert in_japanese(named_error(error)) == (
        "OperationRefused: Paid を受け取るプロセスがありません: キー 'A' の delivery はありません"
    )
    assert code_of(named_error(error)) == error.told.code == "no_process_takes"  # type: ignore[attr-defined]


def test_an_error_of_ours_is_a_text_within_a_text() -> None:
    bad = CorruptInput("read")
    text = Text("its history cannot be read: %(why)s", bad)

    assert text == "its history cannot be read: the result of read is bad"
    assert "the result of" not in in_japanese(text)


@cases("text", "", "no", "100% of %(step)s", "%(step)s", "{}")
def test_what_the_application_says_stays_as_it_is(text: str) -> None:
    assert in_japanese(text) == text
    assert pack_text(text) is None
    assert in_japanese(named_error(Permanent(text or "no"))).endswith(text)
    died = Text("%(why)s, %(number)s times", text, 3)
    assert in_japanese(died).startswith(text)


@cases(
    "text",
    NO_DELIVERY,
    named_error(WorkerDied("%(why)s, %(number)s times", NO_DELIVERY, 3)),
)
def test_a_text_is_stored_as_json(text: Text) -> None:
    stored = json.loads(json.dumps(pack_text(text)))

    again = unpack_text(str(text), stored)

    assert again == text
    assert isinstance(again, Text)
    assert (again.values, again.code) == (text.values, text.code)
    assert in_japanese(again) == in_japanese(text) != text


def test_it_is_found_at_the_end_of_a_traceback_and_where_it_was_cut() -> None:
    stored = pack_text(NO_DELIVERY)

    for english in (f"Traceback\n  File x\n{NO_DELIVERY}\n", NO_DELIVERY[:20]):
        assert unpack_text(english, stored) == NO_DELIVERY


@cases(
    "stored",
    pack_text(Text("there is no event %(key)s", 7)),
    {"template": NO_DELIVERY.template, "values": {"name": "delivery"}},
    {"sentence": 7},
    {"template": 7, "values": [], "code": ""},
    [],
    "there is",
    7,
)
def test_what_is_kept_of_another_text_or_release_does_not_count(stored: object) -> None:
    said = unpack_text(str(NO_DELIVERY), stored)

    assert said == NO_DELIVERY
    assert not isinstance(said, Text)


def test_a_template_that_the_running_code_does_not_know_is_shown_in_english() -> None:
    newer = Text("the moon is in the way of %(step)s", "pay")

    assert in_japanese(unpack_text(str(newer), pack_text(newer))) == newer


def test_a_text_stays_one_where_it_is_copied() -> None:
    text = Text("there is no event %(key)s", 7, code="gone", was="no event %(key)s")

    for again in (copy.deepcopy(text), pickle.loads(pickle.dumps(text))):  # noqa: S301  # its own
        assert again == text
        for name in ("template", "values", "code", "was"):
            assert getattr(again, name) == getattr(text, name)


def test_values_of_secret_fields_are_masked_in_what_is_stored() -> None:
    no_input = "this is no input of %(name)s: %(why)s"
    bad = OperationRefused(no_input, "order", "no: hunter22")
    error = OperationRefused("its history cannot be read: %(why)s", bad)
    attach(error, ["password"], {"password": "hunter22"})

    masked = named_error(error)

    assert isinstance(masked, Text)
    assert "hunter22" not in masked + json.dumps(pack_text(masked))
    assert "hunter22" not in first_wording(masked)


# Worded anew


OLD = Text("%(type)s is not expected in step %(step)s", "Paid", "Waiting")
NEW = Text("%(step)s takes no %(type)s", "Waiting", "Paid", was=OLD.template)


def cause(message: str) -> str:
    return fingerprint("unexpected_event", "delivery", "Waiting", message, "", "")


def test_a_text_that_is_worded_anew_keeps_its_code_and_its_cause() -> None:
    inner = OperationRefused("no process takes %(type)s: %(why)s", "Paid", NEW)
    before = OperationRefused("no process takes %(type)s: %(why)s", "Paid", OLD)

    assert NEW != OLD
    assert NEW.code == OLD.code == "is_not_expected_in_step"
    assert cause(first_wording(NEW)) == cause(str(OLD))
    assert first_wording(named_error(inner)) == named_error(before)


def test_codes_and_first_wordings_are_those_of_the_manual() -> None:
    """Whoever words a sentence anew tells its first wording (`was`), by which it keeps its code and its cause."""
    manual = (ROOT / "docs/texts.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", manual, re.MULTILINE)

    said = {(one.code, one.was or one.template) for one in texts() if one.code}
    assert set(rows) == said
    assert rows == sorted(rows)


def test_a_long_text_is_cut_after_a_word_where_it_can_be() -> None:
    assert shortened("to the customs office", 21) == "to the customs office"
    assert shortened("to the customs office", 20) == "to the customs…"
    assert shortened("to the customs office", 15) == "to the customs…"
    assert shortened("長" * 600, 500) == "長" * 499 + "…"
