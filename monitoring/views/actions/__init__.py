"""Actions of people: each makes one request to the engine."""
