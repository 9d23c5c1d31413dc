"""A help desk: a workflow with one of everything that the console shows; an app that other processes can have too."""
