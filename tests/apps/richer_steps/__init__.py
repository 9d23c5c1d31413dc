"""Steps that sleep, wait for certain events, are given arguments, and are caught with several errors."""
