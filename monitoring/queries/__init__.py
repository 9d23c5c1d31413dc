"""Read models: what the pages show, read from the engine's tables in bounded queries."""
