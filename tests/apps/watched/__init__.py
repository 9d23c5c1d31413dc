"""A small user app of the reliability tests' own: steps that sleep, compute, ask or wait while somebody does harm."""
