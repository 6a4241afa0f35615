"""Other people: sync, history, git hooks."""
