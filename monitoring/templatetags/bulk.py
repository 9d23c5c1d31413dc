"""The library of `{% load bulk %}`, where Django looks for it."""

from monitoring.views.tags.bulk import register
