"""What a failed attempt leads to: another attempt, another way, or a person."""
