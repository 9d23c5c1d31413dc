"""A database full of processes: some are run for real, and what they have written is copied with ids of its own.

`scenarios` says what happens to them, `recording` runs them on a database that is thrown away, `copies` makes the rows
of any number of processes out of that, and `tables` brings these rows into the database. So nothing here knows what
the engine writes, and the copies keep all that must hold of its rows.
"""
