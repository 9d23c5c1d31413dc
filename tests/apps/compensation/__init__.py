"""A small user app of the tests' own: trips that are booked, waited for, called off and undone."""
