"""How decisions are solved: elimination with utilities, updates of policies, Bellman operators, beliefs, feedback."""
