"""A project's own way of telling people."""
