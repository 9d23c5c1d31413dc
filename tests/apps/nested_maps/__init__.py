"""Maps within maps: an element is a process that has a map of its own, and then waits for an event."""
