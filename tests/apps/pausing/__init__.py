"""Workflows that are paused from within their steps."""
