"""The textbook in small: polytopes, families, finite chains."""
