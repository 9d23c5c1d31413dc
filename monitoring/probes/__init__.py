"""Probes of services, workers and queues, for pages and for monitoring systems."""
