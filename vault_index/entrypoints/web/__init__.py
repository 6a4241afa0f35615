"""The HTTP API, `lessons serve`: the questions and commands of `api` as routes."""
