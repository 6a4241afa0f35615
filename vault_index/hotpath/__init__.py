"""The modules that the hook loads on every prompt: the standard library and nothing else."""

DEFAULT_DEADLINE_MS = 2000  # for a hook: `$LESSONS_DEADLINE_MS` names another
