"""The list of processes: its filters, the parts that indexes find, and its pages."""
