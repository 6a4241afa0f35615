"""Proposals: draft lessons made by an agent or from a session, until a person accepts or rejects each.

    draft        what a proposal says, bytes <-> `Proposal`; bounds
    fingerprint  what recognises a rejected one without its text
    store        where a vault's proposals wait
    similarity   whether a draft is a lesson already, or is like one; what its prompts would find
    review       propose, list, edit, reject; what nobody reviews goes
    accept       make it a lesson, change a lesson by it, or add it to one

They are files outside of every vault and index, private to this machine. Nothing searches, injects or
shares them.
"""
