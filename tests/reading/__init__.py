"""Tests of `vault_index/transcripts`; `tests/transcripts` holds what commands print."""
