"""The language of process managers: rows, decisions and validation."""
