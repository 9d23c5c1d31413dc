"""The tags and filters of the templates, a module for each library."""
