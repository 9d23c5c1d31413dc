"""Carrying processes from one installation to another: out as lines of JSON, and in again, where they stand paused.

`form` says what the lines are, `writing` writes a tree of processes, `reading` checks what somebody gives as one, and
`arrival` stores it, as it stood when it was written.
"""
