"""Skills from lessons: a tag that many accepted patterns share becomes a SKILL.md with a reference.

cluster    which lessons belong together, and how near a tag is to a skill
render     a cluster -> SKILL.md and reference.md, by the templates beside this file
build      writing the files, never over what a person changed; copying them where an agent loads them
"""
