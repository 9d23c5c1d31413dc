"""Workflows that are as wide and as dense as their input says."""
