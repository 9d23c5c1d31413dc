"""Changes of a workflow: its visits, and what follows when one is settled."""
