"""What the page of a definition shows: its list's filters, and what its map says."""

from __future__ import annotations

from dataclasses import dataclass

from monitoring.queries.definition.overlay import OVERLAYS
from monitoring.queries.doing import WINDOWS
from monitoring.queries.instances.filters import Filters

VIEW = ("window", "overlay")


@dataclass(frozen=True)
class MapFilters(Filters):
    """The filters of the list below a map, and two parameters that narrow nothing.

    Args:
        window: the time that figures are of; "" for the last hour.
        overlay: what the steps are compared by; "" for the numbers now.
    """

    LOOKS = (*Filters.LOOKS, *VIEW)

    window: str = ""
    overlay: str = ""

    @property
    def lately(self) -> str:
        """The name of the window, the usual one where there is none of that name."""
        return self.window if self.window in WINDOWS else next(iter(WINDOWS))

    @property
    def compared(self) -> str:
        """The name of the overlay, the numbers now where there is none of that name."""
        return self.overlay if self.overlay in OVERLAYS else OVERLAYS[0]

    def view(self) -> dict[str, str]:
        """The parameters that say which map it is, without those of the list."""
        kept = ("version", "graph", *VIEW)
        return {name: text for name, text in self.parameters().items() if name in kept}
