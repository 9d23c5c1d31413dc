"""The messages of processes in their order: what arrived, what was issued, what answered, and their sub-processes."""
