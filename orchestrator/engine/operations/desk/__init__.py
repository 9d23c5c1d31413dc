"""The belongings of people: access tokens, saved views, assigned processes, acknowledgements, handled failures."""
