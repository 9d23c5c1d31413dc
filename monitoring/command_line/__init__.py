"""The console for terminals and scripts: the commands `process` and `draw`, with the console's own queries and actions.

`terminal` has widths and colours, `selection` the choice of processes. Each subcommand of `process` has a module:
`listing`, `showing`, `watching`, `actions` and `transfer` (export and import). `drawing` has the command `draw`.
"""
