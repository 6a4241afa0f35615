"""Skills built from lessons: clusters by tag, the files made of them, and what they were made from."""
