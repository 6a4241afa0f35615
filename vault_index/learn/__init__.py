"""Learning: what a session, a commit or some files taught, as proposals that a person reviews.

material       what happened, redacted: all that the rule and a model may see; an entry
gather         the material of a session, of commits, of files
diff           what changed in a project since then
significance   whether it is worth an analysis, in points
agent_entries  entries as an agent writes them: their fields
by_rule        entries without a model: typed corrections
timeline       the session in the order of time, and as the text that a model is sent
stages         the analysis by a model; how much it sends, and to whom
gate           an entry -> a proposal, or why not, by its evidence
nudge          the line for the person at a session's start
cost           what a model took, in dollars where a price is set
record         what was learned from which material, and what it took
run            all of that in its order, also at the end of a session
skills         accepted lessons -> skills
"""
