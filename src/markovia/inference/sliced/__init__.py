"""Elimination in slices, on the processor or a GPU: exact answers where tables are as large as the memory."""
