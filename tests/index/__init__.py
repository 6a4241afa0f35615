"""Tests of `vault_index/index`."""
