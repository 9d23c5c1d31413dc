"""The child processes of `manage.py up`: each in a process group of its own, watched, and ended with it."""

from orchestrator.exceptions import ProcessionError


class CannotStart(ProcessionError):
    """`up` cannot start; the message says in one line why, and what to do."""
