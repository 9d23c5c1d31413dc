"""S12.1, permissions by definition, in a project with a user model of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

NOT_PARCELS = "Your account may not do this for shipping."

OTHER_PEOPLE = """
import django
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from django.contrib.auth.models import Group, Permission
from orchestrator.engine.operations import escalate
from orchestrator.models import DefinitionGrant
from tests.apps.elsewhere.models import Member
member = Member.objects.create(email="a@example.org")
group = Group.objects.create(name="orders")
right = Permission.objects.get(codename="escalate_processinstance")
DefinitionGrant.objects.create(group=group, definition="order-listing", permission=right)
member.groups.add(group)
print([escalate.forbidden(member, name) for name in ("order-listing", "shipping")])
"""


@pytest.mark.once
def test_s12_1_people_may_be_of_the_projects_own_kind(tmp_path: Path) -> None:
    environ = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.apps.elsewhere.settings",
        "DATABASE_URL": "",
        "PROCESSION_DATA_DIR": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-c", OTHER_PEOPLE],
        cwd=settings.BASE_DIR,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"['', '{NOT_PARCELS}']"
