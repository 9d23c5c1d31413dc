"""The named queries on the tables."""
