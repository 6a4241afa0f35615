"""Files -> rows: the difference, rows, vectors, tables; and what follows from lessons."""
