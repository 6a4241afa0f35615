"""The MCP server: the questions of `api` as tools, resources and prompts of the official SDK."""
