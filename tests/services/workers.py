"""A worker supervisor with its workers, as processes of their own."""

import psutil

from tests.services.program import Program, management_command


class Workers:
    """`manage.py work` with its children on the test database."""

    def __init__(self, processes: int = 2) -> None:
        self.supervisor: Program = management_command(
            "work", "--processes", str(processes)
        )

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers that live now, without the supervisor's."""
        if not self.supervisor.alive:
            return []
        return [child.pid for child in psutil.Process(self.supervisor.pid).children()]

    def start(self) -> None:
        self.supervisor.start()

    def stop(self) -> int | None:
        """End the supervisor as `up` does; return its exit code."""
        return self.supervisor.stop()

    def kill(self) -> None:
        """End supervisor and workers by SIGKILL."""
        self.supervisor.kill()
