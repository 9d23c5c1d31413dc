"""Open pages: their sockets, their subscriptions and their shared answers."""
