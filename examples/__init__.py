"""Example processes, written as a user of Procession writes his own."""
