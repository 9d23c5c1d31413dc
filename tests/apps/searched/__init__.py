"""A workflow whose input has a value of each kind, to be looked for."""
