"""The messages of processes in their order: events, commands, answers, and the starts and ends of sub-processes."""
