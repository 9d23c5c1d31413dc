"""Real services for the tests, started and ended by them."""
