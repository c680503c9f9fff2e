"""Variables without states: numbers, vectors and arrays of them, and what may be found about them."""
