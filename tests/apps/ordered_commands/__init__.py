"""A small user app of the reliability tests' own: books that go through the hands of several, one after the other."""
