"""Score search over DAGs; MMHC."""
