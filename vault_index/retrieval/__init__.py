"""A query -> hits; entries, documents, the floor, near-duplicates, evaluation."""
