"""Who holds which work: leases, giving work back, and looking for what is due."""
