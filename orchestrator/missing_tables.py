"""What is said where the database has no tables yet, or those of older code."""

MIGRATE = (
    "The tables are not there yet, or are older than the code: "
    "python3 manage.py migrate brings them up to date."
)

SQLSTATES = ("42P01", "42703")
"""No such table, no such column."""

OF_SQLITE = ("no such table", "no such column")
"""How SQLite begins to say the same, which has no code for it; a column that is written it names behind the table."""


def lacks_tables(error: BaseException) -> bool:
    """Tell whether the database knows no such table or column, as before a migration."""
    said = str(error)
    return (
        getattr(error.__cause__, "sqlstate", "") in SQLSTATES
        or said.startswith(OF_SQLITE)
        or " has no column named " in said
    )
