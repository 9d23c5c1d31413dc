"""The runtime: the only writer of the tables."""
