"""`manage.py screens`, run as a person runs it: nothing about the pages is wrong, and all are there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from tests.services.patience import SHARED
from tests.services.sizes import FULL

pytestmark = pytest.mark.once

WIDTHS = {
    f"{width}-{theme}" for width in (1440, 1024, 390) for theme in ("light", "dark")
}


@pytest.mark.skipif(not FULL, reason="with --full: it takes minutes")
@pytest.mark.full_size("all pages, 10,000 elements", seconds=900)
def test_every_page_is_photographed_and_none_is_wrong(tmp_path: Path) -> None:
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "screens"]

    done = subprocess.run(
        [*command, "--to", str(tmp_path)],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=900 * SHARED,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    sheets = {file.stem for file in tmp_path.glob("*.webp")}
    assert "home" in sheets
    for name in sheets:
        taken = {file.stem for file in (tmp_path / name).glob("*.png")}
        assert taken == WIDTHS | {"1024-light-ja"}
