"""A definition: its page, its map and its versions."""
