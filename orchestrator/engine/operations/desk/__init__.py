"""What belongs to people: access tokens, saved views, assigned processes, acknowledgements, handled failures."""
