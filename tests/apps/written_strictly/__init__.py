"""Functions that give what their annotations do not allow."""
