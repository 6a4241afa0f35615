"""`lessons-hook`, and its place in the settings of an agent."""
