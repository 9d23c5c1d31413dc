"""The console for terminals and scripts: what the command `process` shows and does, by the console's own queries and
operators' actions.

`terminal` knows widths and colours, `chosen` which processes are meant, and each deed has a module: `listing`,
`showing`, `watching`, `acting` and `carrying` (export and import).
"""
