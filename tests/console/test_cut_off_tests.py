"""A test that is cut off takes none of those after it along."""

import pytest
from django.db import OperationalError, connection

from tests.services.database import close_in_mid_statement

pytestmark = pytest.mark.django_db(transaction=True)


def asked() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 7")
        return int(cursor.fetchone()[0])


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite answers at once")
def test_a_connection_that_waits_for_an_answer_is_closed_and_another_opened() -> None:
    assert asked() == 7
    connection.connection.pgconn.send_query(b"SELECT 8")
    with pytest.raises(OperationalError, match="another command"):
        asked()

    close_in_mid_statement(connection)

    assert asked() == 7


def test_one_that_waits_for_nothing_stays_open() -> None:
    asked()
    before = connection.connection

    close_in_mid_statement(connection)

    assert connection.connection is before
