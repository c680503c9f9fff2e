"""Networks that change."""
