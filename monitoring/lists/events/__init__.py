"""Received events: their search, their numbers, and the processes that they may belong to."""
