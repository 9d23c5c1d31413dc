"""The steps of a process: their visits, states, times and deadlines."""
