"""Presets: deep generative models as estimators that state a network, train it and hand it over."""
