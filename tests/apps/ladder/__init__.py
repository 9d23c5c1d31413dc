"""A process whose deadlines tell one person after the other."""
