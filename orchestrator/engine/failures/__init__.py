"""The consequences of a failed attempt: another attempt, another way, or an incident."""
