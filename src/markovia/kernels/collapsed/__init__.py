"""Compiled sweeps of samplers and steps of EM over hidden groups."""
