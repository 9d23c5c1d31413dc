"""The library of `{% load console %}`, where Django looks for it."""

from monitoring.views.tags.console import register
