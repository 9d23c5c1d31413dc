"""Every table for looking at, none for changing; what operators may do goes through the engine, with a reason."""

from monitoring.admin import failures, notices, processes, workers

__all__ = ["failures", "notices", "processes", "workers"]
