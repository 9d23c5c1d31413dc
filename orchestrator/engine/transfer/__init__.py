"""Transfer of processes to another installation: an export as lines of JSON, and its import as paused processes.

`form` defines the lines, `writing` writes a tree of processes, `reading` checks an export, and `arrival` stores it in
the state of the export.
"""
