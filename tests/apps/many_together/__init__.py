"""A user app of process managers that are moved many at a time."""
