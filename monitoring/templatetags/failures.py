"""The library of `{% load failures %}`, where Django looks for it."""

from monitoring.views.tags.failures import register
