"""Every table for looking at; operators act through the engine, with a reason. Only grants are changed here."""

from monitoring.admin import (
    bulk,
    failures,
    grants,
    notices,
    processes,
    tokens,
    workers,
)

__all__ = ["bulk", "failures", "grants", "notices", "processes", "tokens", "workers"]
