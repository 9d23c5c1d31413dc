"""The console for terminals and scripts: the command `process`, with the console's own queries and actions.

`terminal` has widths and colours, `chosen` the choice of processes. Each subcommand has a module: `listing`, `showing`,
`watching`, `acting` and `carrying` (export and import).
"""
