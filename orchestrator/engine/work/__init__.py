"""Leases of workers on work, and the outcomes of a failed attempt: another attempt, another way, or a person."""
