"""Writing rows: tables, statements, batches of writes, group commits, and errors that pass by themselves."""
