"""Attachments by name. They lie in one folder, and a name cannot lead out of it."""

from pathlib import Path, PurePath

MEDIA = Path(__file__).resolve().parent / "media"


def attachment(name: str) -> Path:
    """Return where the attachment of that name lies.

    Raises:
        FileNotFoundError: there is none, for now at least.
    """
    path = MEDIA / name
    if PurePath(name).name != name or not path.is_file():
        raise FileNotFoundError(f"there is no attachment {name!r}")
    return path
