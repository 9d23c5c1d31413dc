"""Transfer of processes to another installation: an export as lines of JSON, and its import as paused processes.

`form` defines the lines, `exporting` writes a tree of processes, `reading` checks an export, and `importing` stores it
in the state of the export. `due_work` refuses ended processes with due work.
"""
