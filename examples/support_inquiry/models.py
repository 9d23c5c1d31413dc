from django.db import models


class Ticket(models.Model):
    """An inquiry as the support desk sees it; the steps write it in the commit that stores their result."""

    class Status(models.TextChoices):
        NEW = "new", "New"
        ANSWERED = "answered", "Answered"
        ASSIGNED = "assigned", "With an agent"
        WAITING = "waiting", "Waiting for the customer"
        REFUNDED = "refunded", "Refunded"
        ESCALATED = "escalated", "Escalated"
        CLOSED = "closed", "Closed without an answer"

    ticket = models.CharField(primary_key=True, max_length=40)
    process_id = models.UUIDField(unique=True, null=True)
    customer = models.CharField(max_length=100)
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.NEW)
    agent = models.CharField(max_length=40, blank=True)
    message = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        indexes = [
            # For the tickets of each status, and how long they have waited.
            models.Index(fields=["status", "updated_at"], name="ticket_standing"),
        ]

    def __str__(self) -> str:
        return self.ticket
