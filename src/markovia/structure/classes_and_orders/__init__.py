"""GES, BOSS, GRaSP, order search."""
