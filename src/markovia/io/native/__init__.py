"""The native JSON format, a file for each part of a model."""
