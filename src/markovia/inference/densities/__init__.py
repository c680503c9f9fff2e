"""Models of functions: their density as a program, the engines on it, and closed forms."""
