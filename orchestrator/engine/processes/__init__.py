"""The functions that applications call: starting processes and sending events, also inside the caller's transaction."""
