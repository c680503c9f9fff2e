"""The studio: models in the browser, over a small HTTP server of one's own machine, and `serve` for prediction."""
