"""A question -> an answer with its sources.

    question -> the model, which may search once -> passages -> its answer -> sources checked in code

Without a model the best passages are the answer.
"""
