"""What a method is given and returns."""
