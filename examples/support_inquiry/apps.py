from django.apps import AppConfig


class SupportInquiryConfig(AppConfig):
    """The app of the support inquiry example."""

    name = "examples.support_inquiry"
    label = "support_inquiry"
    verbose_name = "Support inquiry"
    default_auto_field = "django.db.models.BigAutoField"
