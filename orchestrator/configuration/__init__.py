"""Settings and environment variables: how each is declared, read, checked and refused."""
