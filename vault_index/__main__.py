"""`python -m vault_index` is `lessons`."""

import sys

from vault_index.entrypoints import watcher

if __name__ == "__main__":
    if watcher.is_asked_for(sys.argv[1:]):
        sys.exit(watcher.main(sys.argv[1:]))
    from vault_index.entrypoints.cli import main

    main()
