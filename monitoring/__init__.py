"""The operator console: it reads the tables, draws the definitions and passes operators' actions to the engine."""
