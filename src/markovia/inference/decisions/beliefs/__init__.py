"""Processes whose state is not seen: beliefs, values over them, controllers of few states."""
