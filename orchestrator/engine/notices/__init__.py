"""Notices: gathered from occurrences, claimed and settled. `orchestrator.workers.sending` sends them."""
