"""The watcher: the one warm process of a vault, which reindexes on save and answers queries.

`line` is what both ends speak, `launch` sees the watcher from outside, `events` gathers what the
file system tells, `serve` answers, `process` is the whole of it.
"""
