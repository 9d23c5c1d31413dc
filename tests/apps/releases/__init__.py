"""An application in two releases, whose messages, data and results differ. A test registers one of them at a time."""
