"""The watcher: the one warm process of a vault, which reindexes on save and answers queries.

`events` gathers what the file system reports, `schedule` decides what is due, `watcher` does it with
`passes` and, for more, with a `background_index`; `questions` answers behind `server` meanwhile.
`launch` is the watcher as commands see it, `hotpath.protocol` what both ends speak.
"""
