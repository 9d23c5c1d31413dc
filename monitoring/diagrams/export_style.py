"""The style sheet inside exported pictures: `picture.css` and `states.css` in the light colours of `tokens.css`.

Programs that show pictures know no custom properties, so the values stand in the place of their names.
"""

import re
from functools import cache
from pathlib import Path

from django.contrib.staticfiles import finders

COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
LAYER = re.compile(r"@layer diagram \{(.*)\}", re.DOTALL)
TOKEN = re.compile(r"--([\w-]+):\s*(?:light-dark\(([^,]+),[^)]*\)|([^;]+));")
USED = re.compile(r"var\(--([\w-]+)\)")


@cache
def export_style() -> str:
    """Return the style sheet, one rule a line.

    Raises:
        KeyError: it uses a token that there is not.
    """
    tokens = {
        name: light or only for name, light, only in TOKEN.findall(_css("tokens"))
    }
    sheets = _css("picture") + LAYER.sub(r"\1", _css("states"))
    text = USED.sub(lambda used: tokens[used[1]], sheets)
    return "\n" + " ".join(text.split()).replace("} ", "}\n") + "\n"


def _css(name: str) -> str:
    found = finders.find(f"monitoring/{name}.css")
    return COMMENT.sub("", Path(str(found)).read_text(encoding="utf-8"))
