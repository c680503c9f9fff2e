"""Most probable states with a certificate."""
