"""Lays out what it reads: a line of JSON with DOT in, a line with SVG and a complaint out, until its input closes.

Run as a file, so that it starts with nothing but Graphviz loaded.
"""

import json
import os
import sys

import pygraphviz


def main() -> None:
    """Answers line by line; the argument says how far to step back behind other processes."""
    os.nice(int(sys.argv[1]))
    for line in sys.stdin:
        try:
            answer = (_svg(json.loads(line)), "")
        except Exception as error:  # noqa: BLE001  whoever asked is told
            answer = ("", str(error) or repr(error))
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()


def _svg(dot: str) -> str:
    """The picture, drawn in one go: `layout` and then `draw` reads the places back, and that crashes at some."""
    graph = pygraphviz.AGraph(string=dot)
    try:
        return str(graph.draw(format="svg", prog="dot").decode())
    finally:
        graph.close()


if __name__ == "__main__":
    main()
