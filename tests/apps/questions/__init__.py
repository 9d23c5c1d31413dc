"""Questions with words, help and values, and one of choices alone."""
