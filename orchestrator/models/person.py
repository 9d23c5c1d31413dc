from typing import Any

from django.conf import settings
from django.db import models


def person(name: Any, on_delete: Any = models.SET_NULL, **options: Any) -> Any:
    """Returns a column that names an account, without an index: those of its table begin with it where they need it.

    Args:
        name: what people call the column.
        on_delete: what becomes of the row when the account is removed.
        options: further ones of the field.
    """
    usual = {"db_index": False, "related_name": "+", "verbose_name": name}
    return models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete, **{**usual, **options}
    )
