"""Tests of the doors over HTTP."""
