"""Processes that strain a page: long names, other scripts, graphs of hundreds of steps, maps of thousands."""
