"""Migrating processes to another version of their definition: planned without a write, and then carried out.

`plan` reads the wanted version and mapping, `fit` checks the history of a workflow's process, and `manager` and
`workflow` plan and carry out the migration of each kind of process.
"""
