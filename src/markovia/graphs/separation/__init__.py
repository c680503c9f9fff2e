"""What a graph says about independence."""
