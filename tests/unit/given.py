"""What the environment's variables say, or how they are refused."""

import pytest

from orchestrator.configuration.conf import SettingRefused
from orchestrator.configuration.variables import Variables, read_variables

OTHERS_TOO = ("DATABASE_URL", "REDIS_URL", "ORDER_LISTING_EXCHANGE_URL")
"""The variables whose names do not begin with PROCESSION_."""


def named(name: str) -> str:
    return name if name in OTHERS_TOO else f"PROCESSION_{name}"


def given(**variables: str) -> Variables:
    """Return what is read where these variables are set, by their names after PROCESSION_."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(named(name), value)
        return read_variables()


def refusal(**variables: str) -> str:
    """Return the line by which these variables are refused."""
    with pytest.raises(SettingRefused) as refused:
        given(**variables)
    [line] = str(refused.value).splitlines()
    return line
