"""Texts that anybody may have written: what is safe to show of them, their code and their sentences."""
