"""From a density's draws to answers: the base of its engines, posteriors made of draws, and how well they predict."""
