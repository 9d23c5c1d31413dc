"""`python -m tests.lint [--fix]`: says what is wrong with the console's CSS and JavaScript; `--fix` formats them."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.lint.formatting import WIDTH, formatted
from tests.lint.javascript import script_mistakes
from tests.lint.stylesheets import sheet_mistakes, token_mistakes
from tests.lint.syntax import Mistake, parsed, syntax_mistakes

ROOT = Path(__file__).parents[2]


def sources(folder: Path) -> list[Path]:
    """The style sheets and scripts of a folder; what others wrote stands in folders of its own."""
    return sorted(path for path in folder.iterdir() if path.suffix in {".css", ".js"})


def mistakes(paths: Sequence[Path]) -> Iterator[tuple[Path, Mistake]]:
    """Everything that is wrong in these files."""
    sheets = {}
    for path in paths:
        text = path.read_text(encoding="utf-8")
        root = parsed(text, path.suffix)
        found = [*syntax_mistakes(root), *layout_mistakes(text, path.suffix)]
        if path.suffix == ".css":
            sheets[path] = root
            found += sheet_mistakes(root)
        else:
            found += script_mistakes(root, path)
        yield from ((path, one) for one in found)
    yield from token_mistakes(sheets)


def layout_mistakes(text: str, suffix: str) -> Iterator[Mistake]:
    """Lines that are too long, and the first that the formatter would write otherwise."""
    lines, wanted = text.splitlines(), formatted(text, suffix).splitlines()
    for number, line in enumerate(lines, 1):
        if len(line) > WIDTH:
            yield Mistake(number, f"longer than {WIDTH}")
    if lines != wanted or not text.endswith("\n"):
        pairs = enumerate(zip(lines, wanted, strict=False), 1)
        first = next((at for at, (one, other) in pairs if one != other), len(lines))
        yield Mistake(first, "not formatted: run python -m tests.lint --fix")


def main(arguments: Sequence[str]) -> int:
    """Format when asked to, then report; the exit code is 0 when nothing is wrong."""
    paths = sources(ROOT / "static" / "monitoring")
    if "--fix" in arguments:
        for path in paths:
            text = path.read_text(encoding="utf-8")
            path.write_text(formatted(text, path.suffix), encoding="utf-8")
    found = sorted(mistakes(paths))
    for path, (line, what) in found:
        sys.stdout.write(f"{path.relative_to(ROOT)}:{line}: {what}\n")
    sys.stdout.write(f"{len(found)} mistakes in {len(paths)} files\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
