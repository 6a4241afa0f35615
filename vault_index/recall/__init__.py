"""An event of an agent -> the context block that it gets."""
