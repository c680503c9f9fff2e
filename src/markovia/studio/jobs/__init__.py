"""Long work in processes of its own: learning from uploaded tables, model families, effects."""
