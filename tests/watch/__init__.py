"""Tests of `vault_index/watch`."""
