"""A simulated energy exchange: a separate program that takes orders over HTTP and calls back with signed webhooks.

It keeps what it knows in memory. Like a real counterpart it is sometimes late, says things twice, out of order, or no.
"""
