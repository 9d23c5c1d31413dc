"""Functions that end with the exceptions that the engine uses itself."""
