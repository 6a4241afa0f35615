"""Tests of `vault_index/hotpath`."""
