"""The views of the console: each reads one read model, or requests one operation."""
