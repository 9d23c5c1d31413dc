import sys

from django.apps import AppConfig, apps
from django.db.models.signals import post_migrate, pre_migrate
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as _


class OrchestratorConfig(AppConfig):
    """The engine; finds `processes` and `handlers`, modules or packages, in every installed app."""

    name = "orchestrator"
    verbose_name = _("Processes")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from orchestrator import permissions, registry  # noqa: PLC0415  not before the apps are loaded
        from orchestrator.checking import checks, settings_checks  # noqa: PLC0415  not before the apps are loaded
        from orchestrator.configuration import migration_limits  # noqa: PLC0415  not before the apps are loaded

        checks.register_checks()
        settings_checks.register_settings_checks()
        pre_migrate.connect(migration_limits.lift_limits, sender=self)
        post_migrate.connect(migration_limits.restore_limits, sender=self)
        post_migrate.connect(permissions.create_permissions, sender=self)
        # Sent after a migration, and when the tables were emptied between two tests.
        post_migrate.connect(_forget_definitions, sender=self)
        autodiscover_modules("processes", "handlers")
        for config in apps.get_app_configs():
            module = sys.modules.get(f"{config.name}.processes")
            if module is not None:
                registry.register_module(module, config.name)


def _forget_definitions(**signal: object) -> None:
    from orchestrator.engine.storage import definitions  # noqa: PLC0415  not before the apps are loaded

    definitions.forget_definitions()
