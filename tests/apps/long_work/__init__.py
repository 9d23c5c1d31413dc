"""A small user app of the tests' own: steps, elements of maps and commands that take their time, each as it is told."""
