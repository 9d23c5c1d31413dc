"""A small user app of the reliability tests' own: light readers that take their time, for the examples' steps."""
