"""Parts that all rooms of the console use: access, masking, addresses, labels, icons and times."""
