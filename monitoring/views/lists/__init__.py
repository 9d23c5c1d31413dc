"""Pages of lists, and the same rows as files."""
