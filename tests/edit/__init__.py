"""Tests of `vault_index/edit`."""
