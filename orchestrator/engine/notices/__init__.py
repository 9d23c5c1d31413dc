"""Notices: gathered from occurrences, claimed and settled. `orchestrator.workers.send_attempt` sends them."""
