"""Effects from designs: discontinuities, differences, controls made of others."""
