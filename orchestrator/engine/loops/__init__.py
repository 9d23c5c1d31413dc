"""Running the ready work of a queue: one piece at a time, and many at once where it waits outside."""
