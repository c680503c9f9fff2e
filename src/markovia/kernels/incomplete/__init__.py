"""EM over missing cells."""
