"""Changes to lesson files: init, add, update, delete, rename, import, accept."""
