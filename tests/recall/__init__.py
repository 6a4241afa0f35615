"""Tests of `vault_index/recall`."""
