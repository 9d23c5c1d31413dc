"""The library of `{% load again %}`, where Django looks for it."""

from monitoring.views.tags.again import register
