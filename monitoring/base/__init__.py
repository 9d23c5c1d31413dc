"""Parts that all rooms of the console use: access, masking, requests, addresses, labels, differences and times."""
