"""The journal: what was asked, done and decided in the sessions on this machine, found again."""
