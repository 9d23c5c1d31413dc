"""Reading and writing the engine's rows: tables, batches of writes, definitions, results, settled visits."""
