"""A user app that knows secrets, and whose code speaks of them wherever it can."""
