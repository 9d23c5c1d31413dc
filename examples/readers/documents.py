"""The text of PDF documents, page by page: pypdf."""

from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from examples.readers.findings import Text, Unreadable

if TYPE_CHECKING:
    from pypdf import PdfReader


def pages_of(document: Path) -> int:
    """Count the pages.

    Raises:
        Unreadable: the file is no PDF document, or a damaged one.
    """
    return opened(document).get_num_pages()


def page_of(document: Path, number: int) -> Text:
    """Extract the text of a page, counted from 0."""
    text = opened(document).pages[number].extract_text()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return Text(lines, 1.0, reader())


def opened(document: Path) -> "PdfReader":
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        found = PdfReader(document, strict=True)
        found.get_num_pages()  # reads the page tree, where a damage would be met
        return found
    except (PyPdfError, ValueError) as error:
        raise Unreadable(
            f"{document.name} is not a PDF document that can be read"
        ) from error


@cache
def reader() -> str:
    return f"pypdf {version('pypdf')}"
