"""What a definition may name as its subject, and which field of the application's models that is."""

from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import models
from django.test.utils import isolate_apps, override_settings

from orchestrator import registry
from orchestrator.definition import Workflow, step
from orchestrator.exceptions import InvalidDefinition
from tests.services.cases import cases
from tests.unit.shop import define


@dataclass(frozen=True)
class Person:
    user: int


def greet(user: int) -> str:
    return "hello"


def greeting(subject: Any) -> type[Workflow]:
    body = {"Input": Person, "correlation": "user", "flow": (step(greet),)}
    return type("Greeting", (Workflow,), {**body, "subject": subject})


@cases("subject", "", "auth.User", "auth.User.username")
def test_a_subject_is_a_model_and_perhaps_a_field(subject: str) -> None:
    assert define(subject=subject).subject == greeting(subject).subject == subject


@cases("subject", None, 3, User, "User", "auth.", "auth.User.", ".User", "a.B.c.d", " ")
def test_another_value_is_no_subject(subject: Any) -> None:
    for declare in (greeting, lambda wrong: define(subject=wrong)):
        with pytest.raises(InvalidDefinition) as refused:
            declare(subject)
        assert 'must be "app.Model" or "app.Model.field"' in str(refused.value)


def test_a_misspelt_subject_is_refused() -> None:
    with pytest.raises(InvalidDefinition, match=r"it has subjects, .* write subject"):
        define(subjects="auth.User")


def test_a_subject_leaves_the_fingerprint_as_it_is() -> None:
    plain, about = define(), define(subject="auth.User")

    assert about.graph().fingerprint() == plain.graph().fingerprint()
    shown = [greeting(one).graph().fingerprint() for one in ("", "auth.User")]
    assert shown[0] == shown[1]


@cases(
    "subject, column",
    ("auth.User", "id"),
    ("auth.user.username", "username"),
    ("order_listing.Order", "order_id"),
)
def test_a_subject_without_a_field_is_the_primary_key(
    subject: str, column: str
) -> None:
    assert registry.find_subject(greeting(subject)).field.name == column


@cases(
    "subject, reason",
    ("shop.Order", "No installed app with label 'shop'"),
    ("auth.Person", "doesn't have a 'Person' model"),
    ("auth.User.number", "User has no field named 'number'"),
    ("auth.User.email", "auth.User.email is no column with unique values"),
    ("auth.User.groups", "auth.User.groups is no column with unique values"),
    ("auth.User.logentry", "auth.User.logentry is no column with unique values"),
)
def test_what_a_subject_lacks_is_named(subject: str, reason: str) -> None:
    with pytest.raises(InvalidDefinition) as refused:
        registry.find_subject(greeting(subject))

    assert reason in refused.value.reason


def test_a_model_that_the_project_has_replaced_is_no_subject() -> None:
    ours = override_settings(AUTH_USER_MODEL="shop.Customer")
    with ours, pytest.raises(InvalidDefinition) as refused:
        registry.find_subject(greeting("auth.User.username"))

    said = "the project has shop.Customer in the place of auth.User"
    assert said in refused.value.reason


@pytest.mark.parametrize("kind", [models.FloatField, models.DecimalField])
def test_a_number_that_is_written_in_several_ways_is_no_key(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with isolate_apps("orchestrator") as known:

        class Weight(models.Model):  # noqa: DJ008  # it is never shown
            grams = kind(unique=True)

            class Meta:
                app_label = "orchestrator"

    monkeypatch.setattr(registry, "apps", known)
    with pytest.raises(InvalidDefinition, match="written in several ways"):
        registry.find_subject(greeting("orchestrator.Weight.grams"))


def test_a_constraint_of_one_field_makes_it_unique(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with isolate_apps("orchestrator") as known:

        class Parcel(models.Model):  # noqa: DJ008  # it is never shown
            number = models.CharField(max_length=10)
            place = models.CharField(max_length=10)

            class Meta:
                app_label = "orchestrator"
                constraints = [
                    models.UniqueConstraint(fields=["number"], name="one_number"),
                    models.UniqueConstraint(
                        fields=["place"], name="some", condition=models.Q(number="")
                    ),
                ]

    monkeypatch.setattr(registry, "apps", known)
    number = registry.find_subject(greeting("orchestrator.Parcel.number")).field
    assert number is Parcel._meta.get_field("number")
    with pytest.raises(InvalidDefinition, match="place is no column with unique"):
        registry.find_subject(greeting("orchestrator.Parcel.place"))
