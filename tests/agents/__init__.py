"""Other agents than Claude Code: what they send and read, where their hooks go, and the real ones."""
