"""The actions of operators on an open visit of a step: decide it, extend its deadline, skip it."""
