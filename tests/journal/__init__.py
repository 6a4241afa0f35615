"""Tests of `vault_index/journal`."""
