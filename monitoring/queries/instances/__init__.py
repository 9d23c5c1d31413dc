"""The list of instances: what it is narrowed to, the parts that indexes find, and its pages."""
