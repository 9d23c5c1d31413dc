"""Carrying processes over to another version of their definition: planned without a write, and then carried out.

`plan` says where a process would stand, or why it cannot go over; `manager` and `workflow` carry it out.
"""
