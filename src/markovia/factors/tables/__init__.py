"""Variables, findings and tables over them: dense, sparse, conditional."""
