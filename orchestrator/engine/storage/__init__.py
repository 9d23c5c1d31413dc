"""What is kept: definitions, inputs, results, receipts and the inbox; and pruning what ended long ago."""
