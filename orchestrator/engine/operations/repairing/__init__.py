"""Repairing a process: a person stages several edits and looks at their plan; one commit applies all, or none.

`edits` reads the edits, `plan` has the base of plans, `manager` and `workflow` plan and carry out the edits of each
kind of process, `targets` lists the choices of a person, `drafts` stores staged edits and proposals.
"""
