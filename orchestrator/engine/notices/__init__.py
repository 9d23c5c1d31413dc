"""Notices: gathered from what has happened, claimed to be sent, settled. Sending itself is no part of the engine."""
