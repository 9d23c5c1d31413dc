"""`python -m examples.exchange --port 8100 --webhook-url http://127.0.0.1:8000/hooks/exchange/`

The signing key is read from the environment, so that it is not seen in the list of processes.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import fields
from types import FrameType

from examples.exchange.behaviour import Behaviour
from examples.exchange.book import Book
from examples.exchange.courier import Courier
from examples.exchange.server import Exchange

LIVELY = Behaviour(
    fail=0.1,
    refuse=0.01,
    lose=0.05,
    reject=0.1,
    late=0.1,
    twice=0.15,
    early=0.1,
    contradict=0.01,
    born=0.2,
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the exchange as the command line says."""
    parser = argparse.ArgumentParser(
        "exchange", description="A simulated energy exchange."
    )
    add_options(parser)
    run(parser.parse_args(arguments))


def run(options: argparse.Namespace) -> None:
    """Runs the exchange until SIGTERM or Ctrl-C.

    Raises:
        SystemExit: with one line, when it cannot start.
    """
    secret = os.environ.get(options.secret_env, "").split(",")[0].strip()
    if not secret:
        sys.exit(f"The signing key is missing: set {options.secret_env}.")
    base = LIVELY if options.lively else Behaviour()
    given = {f.name: getattr(options, f.name) for f in fields(Behaviour)}
    try:
        behaviour = base.changed(
            {name: v for name, v in given.items() if v is not None}
        )
        book = Book(Courier(options.webhook_url, secret), behaviour, options.seed)
        exchange = Exchange(options.port, book)
    except (ValueError, OSError) as error:
        sys.exit(f"The exchange cannot start: {error}")
    serve(exchange)


def serve(exchange: Exchange) -> None:
    """Serves until a signal comes, then ends at once."""
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, _leave)
    threading.Thread(target=_bear_orders, args=(exchange.book,), daemon=True).start()
    print(f"exchange on http://127.0.0.1:{exchange.server_port}", flush=True)  # noqa: T201
    with exchange:
        exchange.serve_forever(poll_interval=0.1)


def _leave(signum: int, frame: FrameType | None) -> None:
    sys.exit(0)


def _bear_orders(book: Book) -> None:
    while True:
        born = book.behaviour.born
        time.sleep(min(1 / born, 1.0) if born else 0.2)
        if born and book.happens(min(born, 1.0)):
            book.bear()


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the exchange's options to a command line."""
    parser.add_argument("--port", type=int, default=8100, help="0 takes any free one")
    parser.add_argument(
        "--webhook-url",
        default=os.environ.get("WEBHOOK_URL", "http://127.0.0.1:8000/hooks/exchange/"),
        help="where to call back; default %(default)s",
    )
    parser.add_argument(
        "--secret-env",
        default="PROCESSION_WEBHOOK_SECRET_EXCHANGE",
        help="environment variable with the signing key",
    )
    parser.add_argument("--seed", type=int, help="makes chance repeatable")
    parser.add_argument("--lively", action="store_true", help="a bit of every trouble")
    for field in fields(Behaviour):
        parser.add_argument(
            f"--{field.name}", type=float, help=f"default {field.default}"
        )


if __name__ == "__main__":
    main()
