"""How commands meet the terminal: what they declare, open and print, and what completes itself."""
