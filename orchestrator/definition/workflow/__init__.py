"""Workflows: the steps and rows, what they are compiled to, and what follows when a step is done."""
