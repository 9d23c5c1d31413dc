"""The library of `{% load waits %}`, where Django looks for it."""

from monitoring.views.tags.waits import register
