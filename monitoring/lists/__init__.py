"""The lists of the console: their filters, pages and rows."""
