"""Dynamic networks, unrolled chains."""
