"""Who holds a piece of work, and what a failed attempt leads to: another attempt, another way, or a person."""
