"""How work runs: clock, threads, processes, progress, seeds, memory, option checks, keyword advice."""
