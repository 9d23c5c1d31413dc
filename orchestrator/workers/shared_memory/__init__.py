"""Memory that a worker shares with its supervisor: its present work, its calls in flight, its claims and results."""
