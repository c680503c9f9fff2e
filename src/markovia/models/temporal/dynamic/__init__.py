"""What dynamic networks are made of: their language, evidence, answers, engines and learning."""
