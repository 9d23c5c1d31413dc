"""The library of `{% load charts %}`, where Django looks for it."""

from monitoring.views.tags.charts import register
