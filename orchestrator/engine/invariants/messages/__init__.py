"""Invariants of events and commands."""
