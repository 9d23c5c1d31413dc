"""What operators do to events: deliver, redeliver, discard and send them."""
