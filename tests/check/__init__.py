"""Tests of `vault_index/check`."""
