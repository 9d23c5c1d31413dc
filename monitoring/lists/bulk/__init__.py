"""Bulk operations and their selections."""
