"""A process at a revision: its transitions, its versions and the entries of its history."""
