"""The library of `{% load live %}`, where Django looks for it."""

from monitoring.views.tags.live import register
