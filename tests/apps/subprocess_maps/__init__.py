"""A small user app of the tests' own: fleets whose ships sail for themselves."""
