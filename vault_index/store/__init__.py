"""The door to LanceDB: tables, their schemas and filters, and what lies beside them in the index."""
