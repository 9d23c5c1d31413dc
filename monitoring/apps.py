from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class MonitoringConfig(AppConfig):
    """The operator console. Announces committed changes to open pages from the moment it is ready."""

    name = "monitoring"
    verbose_name = _("console")

    def ready(self) -> None:
        from monitoring.broadcaster import broadcast
        from orchestrator.signals import committed

        committed.connect(broadcast, dispatch_uid="monitoring.broadcast")
