"""The page of waits: everything that waits, for what, since when and until when."""
