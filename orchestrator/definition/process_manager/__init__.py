"""The language of process managers: rows, what is decided by them, and what makes them invalid."""
