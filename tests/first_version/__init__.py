"""A database that the first version has filled, brought to today's code and run to its end by that; see README.md."""
