"""What the pages of versions show: which there are, how two of them differ, what a migration would do."""
