"""The work that workers hold: leases, releasing claims, and looking for due work."""
