"""The second factor of the bundled project; the walks through it are in a run of their own."""

import pytest
from django.core.management import CommandError, call_command

from tests.services.sign_in_walks import walked

pytestmark = pytest.mark.once


def test_people_show_a_second_factor() -> None:
    walked("tests/console/second_factor_walks.py")


def test_where_there_is_none_the_command_says_so() -> None:
    with pytest.raises(CommandError, match="PROCESSION_SECOND_FACTOR is not set"):
        call_command("reset_second_factor", "anna")
