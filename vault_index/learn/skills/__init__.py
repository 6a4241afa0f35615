"""Skills from lessons: a tag that many accepted patterns share becomes a SKILL.md with a reference.

cluster    which lessons belong together, and how near a tag is to a skill
plain      texts of lessons as they may be written into a skill's files
render     a cluster -> SKILL.md and reference.md, by the templates beside this file
lineage    what a skill was built from, kept in its own metadata
behind     whether it still says what its lessons say
build      writing the files, and never over what a person changed
triggers   whether the prompts of its lessons find it
"""
