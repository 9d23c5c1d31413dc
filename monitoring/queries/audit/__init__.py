"""The audit: who did what, when, from where, why, and what it changed; narrowed by the address, page by page."""
