"""Definitions in two versions each: processes that began on the first go over to the second."""
