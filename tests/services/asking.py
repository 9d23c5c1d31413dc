"""What operators press, in the test's own process."""

from typing import Any
from uuid import uuid4

from django.contrib.auth.models import User

from orchestrator.engine.operations import ActionRequest
from tests.conftest import OPERATOR_MAY, person


def asked(**given: Any) -> ActionRequest:
    """Return a request of the operator, who is made when nobody has asked for one before."""
    if "actor" not in given:
        operator = User.objects.filter(username="operator").first()
        given["actor"] = operator or person("operator", *OPERATOR_MAY)
    return ActionRequest(**{"key": uuid4(), "reason": "why", **given})
