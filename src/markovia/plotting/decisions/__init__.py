"""Pictures of decisions: policies and totals."""
