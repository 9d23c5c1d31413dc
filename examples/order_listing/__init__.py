"""Lists energy orders on an internal market, on an external exchange, or on both."""
