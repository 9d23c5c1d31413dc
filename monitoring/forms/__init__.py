"""Forms and buttons of actions, and their requests to the engine."""
