"""Tests of `vault_index/retrieval`."""
