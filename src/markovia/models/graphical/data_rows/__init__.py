"""A model on rows of data: log probabilities, predictions, posterior tables, and missing cells filled in."""
