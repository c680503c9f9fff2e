"""CRFs."""
