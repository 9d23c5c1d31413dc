"""Pages: each view reads one read model or asks for one operation."""
