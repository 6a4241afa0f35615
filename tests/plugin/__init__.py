"""The plugin for Claude Code: its files, the script that finds the program, and the real agent."""
