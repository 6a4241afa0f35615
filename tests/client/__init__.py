"""Tests of `vault_index/client`."""
