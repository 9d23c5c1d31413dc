"""What the engine reads and writes: tables, batches of writes, stored definitions, results, settled visits."""
