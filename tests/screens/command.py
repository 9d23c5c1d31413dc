"""`manage.py screens`: fills a console of its own, photographs its pages, and says what was wrong with them."""

import argparse
import logging
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCREENS = ROOT / "docs" / "screens"


def main(arguments: Sequence[str]) -> int:
    """Photographs all pages, or those that are named; returns the exit code, 1 if one of them was wrong."""
    given = _read(arguments)
    with tempfile.TemporaryDirectory(prefix="procession-screens-") as folder:
        # The settings read these, so it has to be said before they are loaded.
        for name in ("DATABASE_URL", "REDIS_URL", "PROCESSION_WEB"):
            os.environ.pop(name, None)
        os.environ |= {
            "PROCESSION_DATA_DIR": folder,
            "PROCESSION_DEMO": "1",
            "PROCESSION_APPS": "tests.apps.pictured",
            "DJANGO_SETTINGS_MODULE": "orchestrator.settings",
        }
        import django

        django.setup()
        # What fails here is meant to.
        logging.disable(logging.ERROR)
        complaints = _photographed(given)
    for complaint in complaints:
        _say(complaint)
    return 1 if complaints else 0


def _photographed(given: argparse.Namespace) -> list[str]:
    from django.core.management import call_command

    from orchestrator.engine.storage import definitions
    from orchestrator.sign_in import sign_in_path
    from tests.screens.filling import Sizes, fill, set_going
    from tests.screens.photographs import photographer
    from tests.screens.places import places
    from tests.screens.running import running
    from tests.screens.sheet import sheet

    call_command("migrate", verbosity=0, interactive=False)
    definitions.store_definitions()
    sizes = Sizes(given.processes, given.elements)
    viewer = fill(sizes, _say)
    way_in = sign_in_path(viewer)
    with running(_say) as site:
        set_going(sizes)
        # The database is asked before there is a browser, beside which it cannot be.
        wanted = given.page or ()
        chosen = [one for one in places() if not wanted or one.name in wanted]
        with photographer(site, way_in) as camera:
            for number, place in enumerate(chosen, 1):
                _say(f"{number} of {len(chosen)}  {place.name}")
                folder = given.to / place.name
                camera.take(place, folder)
                sheet(camera.browser, place.name, folder, folder.with_suffix(".webp"))
            _say(f"{len(chosen)} pages are in {given.to}")
            return camera.complaints


def _read(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="manage.py screens", description=__doc__)
    add, one = parser.add_argument, "the name of one page; may be given repeatedly"
    add("--to", type=Path, default=SCREENS, help="folder for the pictures")
    add("--page", action="append", help=one)
    add("--processes", type=int, default=600, help="how many there are")
    add("--elements", type=int, default=10_000, help="of the largest map")
    return parser.parse_args(arguments)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
