"""The page of one definition."""
