"""Transcripts of agents: their bytes become events, turns and edits, for everybody who reads them."""
