"""`python -m vault_index` is `lessons`."""

from vault_index.entrypoints.cli import main

if __name__ == "__main__":
    main()
