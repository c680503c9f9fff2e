"""Pictures of what changes over time: dynamic networks in slices, hidden states, bands and forecasts."""
