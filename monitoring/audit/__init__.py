"""The audit: the actions of operators with their person, time, way, reason and changes, in filtered pages."""
