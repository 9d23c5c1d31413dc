"""Where there is no second factor; `test_single_sign_on.py` runs the walks through it, in second_factor_walks.py."""

import pytest
from django.core.management import CommandError, call_command

pytestmark = pytest.mark.once


def test_where_there_is_none_the_command_says_so() -> None:
    with pytest.raises(CommandError, match="PROCESSION_SECOND_FACTOR is not set"):
        call_command("reset_second_factor", "anna")
