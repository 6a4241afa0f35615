"""Did it help? It judges what agents did with the lessons that they received.

    injections.jsonl  +  session files and transcripts  ->  judge  ->  a ledger  ->  a tally per lesson

`words` finds in a lesson what can be recognised, `story` tells what a session said and did, `judge`
compares the two, `ledger` keeps the verdicts for longer than the records that they came from.
"""

from __future__ import annotations

from vault_index.recall.outcome.ledger import Ledger, Tally, tally, update

__all__ = ["Ledger", "Tally", "tally", "update"]
