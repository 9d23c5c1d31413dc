"""Calling code of the application: its errors, and what it leaves in its worker and in the session."""
