"""Attachments by name. They lie in one folder, and a name cannot lead out of it."""

from pathlib import Path, PurePath

from orchestrator import Permanent

MEDIA = Path(__file__).resolve().parent / "media"


def attachment(name: str) -> Path:
    """Return where the attachment of that name lies.

    Raises:
        Permanent: there is none.
    """
    path = MEDIA / name
    if PurePath(name).name != name or not path.is_file():
        raise Permanent(f"there is no attachment {name!r}")
    return path
