"""The admin of all tables, read-only except for grants. Operators act through the engine, with a reason."""

from monitoring.admin import bulk, failures, grants, notices, processes, tokens, workers

__all__ = ["bulk", "failures", "grants", "notices", "processes", "tokens", "workers"]
