"""Tests of `vault_index/lesson`."""
