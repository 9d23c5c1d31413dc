"""A workflow whose failures go several ways; the errors have names that others have too."""
