"""An operator action of a project's own."""
