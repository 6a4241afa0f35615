"""Who asks: the command line, the agents' hooks."""
