"""Tests of `vault_index/embed`."""
