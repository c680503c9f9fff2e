"""The studio's drawing outside the studio: reports of one file, and notebook widgets."""
