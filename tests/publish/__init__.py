"""Tests of `vault_index/publish`."""
