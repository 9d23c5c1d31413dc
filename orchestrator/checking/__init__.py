"""System checks of definitions, and of a project's settings."""
