"""A small user app of the reliability tests' own: parts of parts that break until somebody has mended them."""
