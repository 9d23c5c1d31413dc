"""A small user app of the tests' own: a workflow for each pattern, and steps that fail in every way there is."""
