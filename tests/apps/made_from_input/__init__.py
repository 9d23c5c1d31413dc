"""Workflows whose graphs are made from their inputs."""
