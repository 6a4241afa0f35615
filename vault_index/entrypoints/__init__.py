"""The doors of the package: the command line, agents' hooks, MCP, HTTP and the pages."""
