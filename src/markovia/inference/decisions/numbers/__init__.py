"""Decisions that are numbers: linear feedback, and plans by derivatives."""
