"""Auto, escalation, batches, warming up."""
