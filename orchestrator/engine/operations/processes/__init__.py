"""The actions of operators on a process, and the outcomes of those whose effect comes later."""
