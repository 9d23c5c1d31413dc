"""Migrations after the last release leave its workers running."""

from typing import Any

import pytest
from django.db import migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ModelState, ProjectState

from orchestrator.migrations._operations import AddIndexConcurrently
from tests.lint.migrations import Rules
from tests.services.former_release import LAST_MIGRATION, RELEASE

LAST_USED: dict[str, str] = {}
"""What migrations remove ("steprun.given_back", "repair"), and the release that used it last."""


def test_no_migration_since_the_release_disturbs_its_workers() -> None:
    loader = MigrationLoader(None)
    names = sorted(name for app, name in loader.graph.nodes if app == "orchestrator")
    state = loader.project_state(("orchestrator", LAST_MIGRATION))
    rules, found = Rules(RELEASE, LAST_USED), list[str]()

    for name in names[names.index(LAST_MIGRATION) + 1 :]:
        found += rules.findings(loader.graph.nodes["orchestrator", name], state)

    assert found == []


def rewrite(apps: Any, editor: Any) -> None:
    apps.get_model("orchestrator", "Parcel").objects.update(note="")


def rewrite_in_chunks(apps: Any, editor: Any) -> None:
    parcels = apps.get_model("orchestrator", "Parcel").objects.filter(note="x")
    while some := [*parcels.values_list("pk")[:1000]]:
        parcels.filter(pk__in=some).update(note="")


def text(**more: Any) -> Any:
    return models.CharField(**{"max_length": 20, **more})


def said(*changes: Any, atomic: bool = True) -> list[str]:
    """Return the findings of the lint about a migration of parcels with these operations."""
    state = ProjectState()
    fields = [("id", models.BigAutoField(primary_key=True)), ("note", text(null=True))]
    fields += [("place", text(db_default=""))]
    state.add_model(ModelState("orchestrator", "Parcel", fields))
    body = {"operations": [*changes], "atomic": atomic}
    migration = type("Migration", (migrations.Migration,), body)
    rules = Rules("0.1", {"parcel.note": "0.1", "parcel.place": "0.0"})
    return list(rules.findings(migration("0099_change", "orchestrator"), state))


INDEX = models.Index(fields=["note"], name="by_note")
ONE_NOTE = models.UniqueConstraint(fields=["note"], name="one_note")


@pytest.mark.parametrize(
    ("operation", "remedy"),
    [
        (migrations.AddField("parcel", "weight", text()), "give it db_default"),
        (migrations.RemoveField("parcel", "id"), 'list "parcel.id" in LAST_USED'),
        (migrations.RemoveField("parcel", "note"), "remove it a release later"),
        (migrations.DeleteModel("Parcel"), 'list "parcel" in LAST_USED'),
        (migrations.RenameField("parcel", "note", "text"), "add the new one"),
        (migrations.RenameModel("Parcel", "Box"), "add the new one"),
        (migrations.AlterField("parcel", "note", text()), "keep null=True"),
        (migrations.AlterField("parcel", "place", text()), "keep db_default"),
        (
            migrations.AlterField("parcel", "note", text(null=True, max_length=5)),
            "keep max_length=20",
        ),
        (
            migrations.AlterField("parcel", "note", models.IntegerField(null=True)),
            "add a field of the new type",
        ),
        (
            migrations.AlterField("parcel", "note", text(null=True, unique=True)),
            "drop unique=True",
        ),
        (migrations.AddConstraint("parcel", ONE_NOTE), "add it a release after"),
        (migrations.AddIndex("parcel", INDEX), "use AddIndexConcurrently"),
        (AddIndexConcurrently("parcel", INDEX), "set atomic = False"),
        (migrations.RunPython(rewrite), "in chunks"),
        (migrations.RunSQL("UPDATE parcel SET note = ''"), "in chunks"),
    ],
)
def test_what_disturbs_workers_of_the_release_is_refused_with_a_remedy(
    operation: Any, remedy: str
) -> None:
    [finding] = said(operation)

    assert finding.startswith(f"orchestrator 0099_change, {type(operation).__name__}")
    assert remedy in finding


def test_what_workers_of_the_release_need_not_know_is_allowed() -> None:
    added = [
        migrations.AddField("parcel", "weight", text(null=True)),
        migrations.AddField("parcel", "size", text(db_default="")),
        migrations.RemoveField("parcel", "place"),
        migrations.AlterField("parcel", "note", text(null=True, max_length=200)),
        AddIndexConcurrently("parcel", INDEX),
        migrations.RunPython(rewrite_in_chunks),
        migrations.CreateModel("Box", [("id", models.BigAutoField(primary_key=True))]),
        migrations.AddField("box", "weight", text()),
        migrations.AddConstraint("box", ONE_NOTE),
    ]

    assert said(*added, atomic=False) == []
