"""A small user app of the tests' own: cars are built of what arrives in any order."""
