"""The history of a process, a page at a time or as a whole."""
