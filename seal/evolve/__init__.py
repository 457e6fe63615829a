"""Evolving words: evidence, rewriters, guards, the search and its gate, the lineage."""
