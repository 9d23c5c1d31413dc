"""A small user app of the reliability tests' own: ships that sail late, sink, and are taken back step by step."""
