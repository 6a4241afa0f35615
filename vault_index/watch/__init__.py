"""The watcher: the one warm process of a user, which reindexes on save and answers queries.

`watcher` listens on one socket and opens a `vault_watch` for each vault, with a thread of its own:
`events` gathers what the file system reports, `schedule` decides what is due; much is left to a
`lessons index` of lower priority, and questions are answered meanwhile. `journal` takes in what agents
wrote. `launch` is the watcher as commands see it, `hotpath.protocol` what both ends speak.
"""
