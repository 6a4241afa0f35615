"""Outcome: what an agent did with the lessons it was given, and which lessons are out of date."""
