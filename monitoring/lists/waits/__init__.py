"""The page of waits: the waiting visits, with their kinds, beginnings and deadlines."""
