"""Tests of `vault_index/share`."""
