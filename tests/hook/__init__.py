"""The hook, as an agent runs it."""
