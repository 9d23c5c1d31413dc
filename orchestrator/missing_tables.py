"""The message for a database without tables, or with the tables of older code."""

MIGRATE = (
    "The tables are not there yet, or are older than the code: "
    "python3 manage.py migrate brings them up to date."
)

SQLSTATES = ("42P01", "42703")
"""No such table, no such column."""

SQLITE_MESSAGES = ("no such table", "no such column")
"""The beginnings of SQLite's messages, which have no code. For a column in INSERT the table comes first."""


def lacks_tables(error: BaseException) -> bool:
    """Return whether the database knows no such table or column, as before a migration."""
    said = str(error)
    return (
        getattr(error.__cause__, "sqlstate", "") in SQLSTATES
        or said.startswith(SQLITE_MESSAGES)
        or " has no column named " in said
    )
