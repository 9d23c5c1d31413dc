"""Small user apps of the tests' own, each named after what it exercises."""
