"""How rows are written: tables, statements, batches of writes, group commits, and errors that pass by themselves."""
