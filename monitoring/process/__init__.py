"""A process: its page, at each revision."""
