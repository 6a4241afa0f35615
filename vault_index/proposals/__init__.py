"""Proposals: draft lessons made by an agent or from a session, until a person accepts or rejects each.

    draft       what a proposal says, bytes <-> `Proposal`; bounds
    shelf       where those of a vault wait, and what recognises a rejected one
    likeness    whether a draft is a lesson already, or is like one
    review      propose, list, accept, reject

They are files outside of every vault and index, private to this machine. Nothing searches, injects or
shares them.
"""
