from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class MonitoringConfig(AppConfig):
    """The operator console. Announces committed changes to open pages from the moment it is ready.

    Its lists are made known to workers, who gather what bulk operations are done to.
    """

    name = "monitoring"
    verbose_name = _("console")

    def ready(self) -> None:
        from monitoring import checks  # noqa: PLC0415  not before the apps are loaded
        from monitoring.broadcaster import broadcast  # noqa: PLC0415  not before the apps are loaded
        from monitoring.queries import selections  # noqa: PLC0415  not before the apps are loaded
        from orchestrator.engine.operations import register_selection  # noqa: PLC0415  not before the apps are loaded
        from orchestrator.signals import committed  # noqa: PLC0415  not before the apps are loaded

        checks.connect()
        for selection in selections.SELECTIONS:
            register_selection(selection)
        committed.connect(broadcast, dispatch_uid="monitoring.broadcast")
