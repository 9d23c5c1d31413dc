"""A small user app of the tests' own: parcels are packed, carried, delivered."""
