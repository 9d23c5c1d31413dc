"""Goes from one page of a list to the next, as who presses Older does."""

from monitoring.lists.processes.filters import Filters
from monitoring.lists.processes.pages import process_page
from orchestrator.models import ProcessInstance

MOST_PAGES = 50_000


def walked(filters: Filters, size: int) -> list[ProcessInstance]:
    """Return what the pages of a list of processes have, one after the other."""
    seen, before = list[ProcessInstance](), ""
    for _ in range(MOST_PAGES):
        page = process_page(filters, before, size=size)
        assert page.first is (before == "")
        seen += page.rows
        if not (before := page.older):
            return seen
    raise AssertionError("its pages find no end")
