"""Tests of `vault_index/search`."""
