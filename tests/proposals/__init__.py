"""Tests of `vault_index/proposals`."""
