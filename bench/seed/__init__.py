"""A database full of processes: some run for real, and copies of their rows get ids of their own.

`scenarios` plays them, `recording` runs the scenarios on a temporary database, `copies` makes the rows of any number of
processes out of the recordings, and `tables` writes these rows. So no module here knows the engine's rows, and the
copies keep their invariants.
"""
