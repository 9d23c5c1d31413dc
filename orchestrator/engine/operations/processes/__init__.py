"""The actions of operators on a process, one a module."""
