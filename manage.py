#!/usr/bin/env python3
"""The front door: `python3 manage.py up` runs Procession, `python3 manage.py test` tests it.

This file stays readable to any Python, so that one that is too old can say so.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036  an older Python can read this file, and says so
    sys.exit(
        "Procession needs Python 3.11 or newer, and this is Python %d.%d."  # noqa: UP031  older Pythons read this
        % sys.version_info[:2]
    )

if __name__ == "__main__":
    import gc

    # What is loaded stays. Looking through it for garbage again and again takes a sixth of the start.
    gc.disable()

    from bootstrap import prepare

    prepare(sys.argv)

    from orchestrator.command_line import main

    main(sys.argv)
