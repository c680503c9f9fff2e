"""Processes whose state is seen: sweeps, programs, certified values."""
