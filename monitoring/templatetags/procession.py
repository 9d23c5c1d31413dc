"""The library of `{% load procession %}`, where Django looks for it."""

from monitoring.views.tags.procession import register
