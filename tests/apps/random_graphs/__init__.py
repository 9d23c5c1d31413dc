"""Workflows whose graphs are made from dice, for tests under harm."""
