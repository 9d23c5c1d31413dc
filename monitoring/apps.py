from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class MonitoringConfig(AppConfig):
    """The operator console. Once it is ready, it announces committed changes to open pages.

    It registers its lists as selections, from which workers gather the items of bulk operations.
    """

    name = "monitoring"
    verbose_name = _("console")

    def ready(self) -> None:
        from monitoring import checks  # noqa: PLC0415  not before the apps are loaded
        from monitoring.lists.bulk import selections  # noqa: PLC0415  not before the apps are loaded
        from monitoring.live.broadcaster import broadcast  # noqa: PLC0415  not before the apps are loaded
        from orchestrator.engine.operations import register_selection  # noqa: PLC0415  not before the apps are loaded
        from orchestrator.signals import committed  # noqa: PLC0415  not before the apps are loaded

        checks.connect()
        for selection in selections.SELECTIONS:
            register_selection(selection)
        committed.connect(broadcast, dispatch_uid="monitoring.broadcast")
