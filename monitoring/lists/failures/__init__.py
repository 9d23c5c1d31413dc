"""Failures in groups of one cause."""
