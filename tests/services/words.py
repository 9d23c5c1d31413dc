"""Lists of words, several in a line."""


def words(text: str) -> list[str]:
    """Return what spaces and ends of lines divide, as of a table that would have one word in each line."""
    return text.split()
