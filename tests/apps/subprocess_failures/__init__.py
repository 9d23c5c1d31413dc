"""A small user app of the tests' own: errands that fail, and the processes that they are parts of."""
