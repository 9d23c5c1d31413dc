"""The keyboard keys of the console: their effects, for the sheet that `?` opens, and the keys of buttons."""

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True)
class KeyBinding:
    """The keys to press in turn, their effect, and the elements of a page that have it (a CSS selector)."""

    presses: tuple[str, ...]
    does: Any
    of: str


OF_ACTIONS = {
    "retry": "r",
    "decide": "d",
    "escalate": "e",
    "assign": "a",
    "pause": "p",
    "unpause": "p",
}
"""The key of an action's button, by the action's name; each opens a dialog, none acts at once."""

FORMS = "main form[method=post]"
"""The forms whose first field has a key."""

WRITTEN = f"{FORMS}, dialog form[data-action]"
"""The forms in whose fields people write."""

PAGES = [
    KeyBinding(("g", letter), page, f"nav [data-go-key={letter}]")
    for letter, page in (
        ("h", _("Attention")),
        ("p", _("Processes")),
        ("w", _("Waits")),
        ("d", _("Decisions")),
        ("e", _("Events")),
        ("f", _("Failures")),
        ("o", _("Operations")),
        ("a", _("Audit")),
    )
]
EVERYWHERE = [
    KeyBinding(("/",), _("Find"), ".find"),
    KeyBinding(("?",), _("This sheet"), "#keys"),
    KeyBinding(("Esc",), _("Close a dialog, or the panel of a step"), "#keys"),
]
HERE = [
    KeyBinding(("j",), _("Next row"), "main tbody tr"),
    KeyBinding(("k",), _("Row before"), "main tbody tr"),
    KeyBinding(("i",), _("First field of the form"), FORMS),
    KeyBinding(("Ctrl", "Enter"), _("Send the form (in one of its fields)"), WRITTEN),
    *(
        KeyBinding((letter,), word, f"main [data-key={letter}]")
        for letter, word in (
            ("r", _("Retry: of this row, or the topmost")),
            ("d", _("Decide")),
            ("e", _("Escalate")),
            ("a", _("Assign")),
            ("p", _("Pause, or resume")),
            ("s", _("Send event")),
            ("n", _("Show what is new")),
            ("l", _("Follow the current step")),
            ("w", _("Watch")),
        )
    ),
    KeyBinding(("←", "→"), _("A moment back, or on (on the time slider)"), "#moment"),
    KeyBinding(
        ("←", "→", "↑", "↓"),
        _("To the next step (in the diagram); with Shift it moves the diagram"),
        "[data-pans]",
    ),
]

SHEET = [(_("Go to"), PAGES), (_("Everywhere"), EVERYWHERE), (_("On this page"), HERE)]
