"""The checks of a workflow: its steps, rows, branches, parameters and structure."""
