"""Objectives for parameters of models: what a step of training makes smaller, one a file."""
