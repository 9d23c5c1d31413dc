"""Carrying out claimed events, commands and deadlines."""
