"""Learning: what a session, a commit or some files taught, as proposals that a person reviews.

material        what happened, redacted: all that rules and models may see
significance    whether it is worth an analysis, in points
by_rule         entries without a model: corrections, repairs
entry           a lesson as an analysis makes it, with its evidence
"""
