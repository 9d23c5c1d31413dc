"""Which worker holds which work: leases, releasing claims, and looking for due work."""
