from django.apps import AppConfig


class OrderListingConfig(AppConfig):
    """The app of the order listing example."""

    name = "examples.order_listing"
    label = "order_listing"
    verbose_name = "Order listing"
