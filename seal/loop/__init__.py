"""Co-evolution: generations of roll out, diagnose, evolve, train and evaluate."""
