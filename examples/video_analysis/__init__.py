"""Analyses films: what is shown, what is said, and both together."""
