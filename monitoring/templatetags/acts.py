"""The library of `{% load acts %}`, where Django looks for it."""

from monitoring.views.tags.acts import register
