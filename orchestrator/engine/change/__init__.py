"""One change of one locked process: deciding, settling, starting and writing."""
