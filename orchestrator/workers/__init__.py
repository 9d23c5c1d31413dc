"""Worker processes: a supervisor, its children, and the one that is current."""
