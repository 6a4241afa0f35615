"""Learning: what a session, a commit or some files taught, as proposals that a person reviews.

material        what happened, redacted: all that rules and models may see
material_of     the material of a session, of commits, of files
diff            what changed in a project since then
wordings        the words by which people correct, rule and explain
significance    whether it is worth an analysis, in points
by_rule         entries without a model: corrections, repairs
entry           a lesson as an analysis makes it, with its evidence
"""
