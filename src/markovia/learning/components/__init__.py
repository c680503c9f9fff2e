"""Families of distributions, one for each hidden state or component of a mixture."""
