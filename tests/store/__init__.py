"""Tests of `vault_index/store`."""
