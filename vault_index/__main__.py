"""`python -m vault_index` is `lessons`."""

import sys

from vault_index.entrypoints import capture_process, watcher

if __name__ == "__main__":
    for process in (watcher, capture_process):
        if process.is_asked_for(sys.argv[1:]):
            sys.exit(process.main(sys.argv[1:]))
    from vault_index.entrypoints.cli import main

    main()
