"""Open models: their history and files, how they are drawn and changed, and what they answer."""
