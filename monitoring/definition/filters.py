"""The filters of a definition's page: those of its list, and the options of its map."""

from __future__ import annotations

from dataclasses import dataclass

from monitoring.definition.overlay import OVERLAYS
from monitoring.lists.processes.filters import Filters
from monitoring.queries.activity import WINDOWS

VIEW = ("window", "overlay")


@dataclass(frozen=True)
class MapFilters(Filters):
    """The filters of the list below a map, and two options of the map.

    Args:
        window: the time of the figures; "" for the last hour.
        overlay: the figure by which steps are compared; "" for the numbers now.
    """

    LOOKS = (*Filters.LOOKS, *VIEW)

    window: str = ""
    overlay: str = ""

    @property
    def window_name(self) -> str:
        """The name of the window; the first one for an unknown name."""
        return self.window if self.window in WINDOWS else next(iter(WINDOWS))

    @property
    def compared(self) -> str:
        """The name of the overlay; the numbers now for an unknown name."""
        return self.overlay if self.overlay in OVERLAYS else "now"

    def view(self) -> dict[str, str]:
        """Return the parameters of the map, without those of the list."""
        kept = ("version", "graph", *VIEW)
        return {name: text for name, text in self.parameters().items() if name in kept}
