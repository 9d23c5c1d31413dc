"""The library of `{% load repeated_work %}`, where Django looks for it."""

from monitoring.views.tags.repeated_work import register
