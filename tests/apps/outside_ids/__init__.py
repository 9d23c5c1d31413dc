"""Deliveries that others know by numbers of their own: parcels, a tracking code, a customer."""
