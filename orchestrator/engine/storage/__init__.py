"""Storing definitions, inputs, results, receipts and the inbox; and pruning ended processes."""
