"""A script that lays out DOT: it reads lines of JSON, and answers each with SVG and an error, until its input closes.

Run as a file, so that it starts with nothing but Graphviz loaded.
"""

import json
import os
import sys

import pygraphviz


def answer_lines() -> None:
    """Answer line by line. The argument of the command is the niceness."""
    os.nice(int(sys.argv[1]))
    for line in sys.stdin:
        try:
            answer = (_svg(json.loads(line)), "")
        except Exception as error:  # noqa: BLE001  the caller gets it
            answer = ("", str(error) or repr(error))
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()


def _svg(dot: str) -> str:
    """Draw in one go: `layout` with `draw` after it reads the places back, and crashes at some graphs."""
    graph = pygraphviz.AGraph(string=dot)
    try:
        return str(graph.draw(format="svg", prog="dot").decode())
    finally:
        graph.close()


if __name__ == "__main__":
    answer_lines()
