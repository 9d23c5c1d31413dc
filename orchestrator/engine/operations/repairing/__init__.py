"""Repairing a process: several edits that are planned together, looked at, and carried out all or not at all.

`edits` reads them, `plan` says what they would come to, `manager` and `workflow` plan and carry out those of each kind
of process, `targets` says what can be chosen, `drafts` keeps what is staged until it is applied.
"""
