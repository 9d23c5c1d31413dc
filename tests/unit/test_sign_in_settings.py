"""What the variables of single sign-on and of the second factor may say."""

import pytest

from orchestrator.configuration import sign_in_settings
from orchestrator.configuration.sign_in_settings import group_map, provider_settings
from tests.services.cases import cases
from tests.unit.given import given, refusal

ISSUER = "https://id.example.org/realms/example"
SECRET = "do-not-tell-anyone"
COMPLETE = {
    "SSO_ISSUER": ISSUER,
    "SSO_CLIENT_ID": "procession",
    "SSO_CLIENT_SECRET": SECRET,
    "SSO_GROUPS": "ops-team=operators",
}


def test_what_is_complete_is_taken() -> None:
    found = given(**COMPLETE, SSO_ONLY="1", SECOND_FACTOR="required")

    assert (found.SSO_ISSUER, found.SSO_NAME) == (ISSUER, "single sign-on")
    assert found.SSO_GROUPS_CLAIM == "groups"
    assert found.SSO_ONLY is True


@cases("name", "CLIENT_ID", "CLIENT_SECRET", "GROUPS")
def test_a_provider_needs_the_others_too(name: str) -> None:
    line = refusal(**COMPLETE | {f"SSO_{name}": ""})

    assert line == f"PROCESSION_SSO_ISSUER needs PROCESSION_SSO_{name} too."


@cases("name, value", ("SSO_ONLY", "1"), ("SSO_GROUPS", "a=b"), ("SSO_NAME", "Okta"))
def test_what_has_no_effect_alone_is_refused(name: str, value: str) -> None:
    line = refusal(**{name: value})

    assert line.startswith(f"PROCESSION_{name} has no effect without PROCESSION_SSO_")


@cases(
    "name, value, must",
    ("ISSUER", "http://id.example.org", "look like https://id.example.org/realms"),
    ("ISSUER", "id.example.org", "look like https://id.example.org/realms"),
    ("ISSUER", "https://id.example.org/?a=b", "look like https://id.example.org"),
    ("ISSUER", "https://a:b@id.example.org", "look like https://id.example.org"),
    ("ISSUER", f"https://id.example.org/{'x' * 200}", "look like https://id.ex"),
    ("ISSUER", "https://id.example.org:x", "look like https://id.example.org"),
    ("CLIENT_ID", "with space", "have 1 to 191 letters"),
    ("CLIENT_SECRET", f"{SECRET} ", "have 1 to 255 letters"),
    ("NAME", "x" * 41, "have up to 40 characters"),
    ("GROUPS_CLAIM", "with space", "be the name of a claim"),
    ("GROUPS", ",", "list groups such as ops-team=operators"),
    ("GROUPS", "a=", "list groups such as ops-team=operators"),
    ("GROUPS", "=b", "list groups such as ops-team=operators"),
    ("GROUPS", "*", "list groups such as ops-team=operators"),
    ("GROUPS", f"a={'b' * 151}", "list groups such as ops-team=operators"),
)
def test_it_is_said_what_they_must_be(name: str, value: str, must: str) -> None:
    line = refusal(**COMPLETE | {f"SSO_{name}": value})

    assert line.startswith(f"PROCESSION_SSO_{name} must {must}")
    assert SECRET not in line


def test_a_second_factor_is_optional_or_required() -> None:
    line = refusal(SECOND_FACTOR="yes")

    assert line == "PROCESSION_SECOND_FACTOR must be optional or required, not 'yes'."


@cases("address", "http://127.0.0.1:8080/x", "http://localhost", "http://[::1]:9")
def test_on_this_machine_a_provider_may_speak_http(address: str) -> None:
    assert address == given(**COMPLETE | {"SSO_ISSUER": address}).SSO_ISSUER


@cases("asked", COMPLETE, {"SECOND_FACTOR": "optional"})
def test_without_the_extra_it_is_said_what_to_install(
    asked: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign_in_settings, "EXTRA", ("no_such_module",))

    line = refusal(**asked)

    assert "needs the packages of the extra sso" in line
    assert 'python -m pip install "procession[sso]"' in line
    assert SECRET not in line


def test_groups_may_have_one_name_and_a_group_may_give_several() -> None:
    entries = ["a=x", "a = y", "b", "cn=c=z", "*=readers"]

    found = group_map(entries)

    wanted = {"a": ["x", "y"], "b": ["b"], "cn=c": ["z"], "*": ["readers"]}
    assert found == wanted


def test_a_slash_at_the_end_of_an_issuer_makes_no_other_one() -> None:
    one, other = (
        provider_settings(address, "c", "s", "n")
        for address in ("https://id.example.org", "https://id.example.org/")
    )

    assert one == other
