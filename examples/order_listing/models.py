"""The orders themselves: business data. Procession alone knows the step of an order's process."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from examples.order_listing.messages import Destination

DESTINATIONS = {
    Destination.INTERNAL: _("internal market"),
    Destination.EXTERNAL: _("exchange"),
    Destination.BOTH: _("both markets"),
}


class Order(models.Model):
    """An order and where it is listed. After `place_order` has entered it, the command handlers alone write it."""

    order_id = models.CharField(_("order id"), primary_key=True, max_length=100)
    process_id = models.UUIDField(_("process id"), unique=True, editable=False)
    destination = models.CharField(
        _("destination"),
        max_length=10,
        choices=[(d.value, label) for d, label in DESTINATIONS.items()],
    )
    description = models.CharField(_("description"), max_length=200)
    external_id = models.CharField(_("id at the exchange"), max_length=100, blank=True)
    external_listed_at = models.DateTimeField(
        _("listed on the exchange at"), null=True, blank=True
    )
    internal_listed_at = models.DateTimeField(
        _("listed on the internal market at"), null=True, blank=True
    )
    reason = models.CharField(_("refused because"), max_length=500, blank=True)
    notice = models.CharField(_("notice to the trader"), max_length=200, blank=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        verbose_name = _("order")
        verbose_name_plural = _("orders")
        indexes = [models.Index(fields=["-created_at"], name="latest_orders")]

    def __str__(self) -> str:
        return f"{self.order_id}: {self.description}"


class HistoryEntry(models.Model):
    """A line in an order's history, written by a simple event handler under its idempotency key."""

    id = models.UUIDField(_("key"), primary_key=True, editable=False)
    order_id = models.CharField(_("order id"), max_length=100, db_index=True)
    text = models.CharField(_("what happened"), max_length=300)
    at = models.DateTimeField(_("at"), auto_now_add=True)

    class Meta:
        verbose_name = _("history entry")
        verbose_name_plural = _("history")

    def __str__(self) -> str:
        return f"{self.order_id}: {self.text}"
