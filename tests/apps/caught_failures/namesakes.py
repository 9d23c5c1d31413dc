"""Errors of other modules that have the names of those that are raised, and are caught by other rows."""


class Torn(LookupError):
    """Not the one that is raised."""


class Stained(LookupError):
    """Not the one that is raised either."""
