"""Tests of `vault_index/git`."""
