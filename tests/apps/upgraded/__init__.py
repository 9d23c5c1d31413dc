"""Loans and their checks: a test changes the text of the module, as a release does."""
