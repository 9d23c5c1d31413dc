"""Running the claimed visits of a workflow's steps."""
