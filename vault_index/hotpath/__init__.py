"""What the hook loads on every prompt: the standard library and nothing else."""
