"""`python -m vault_index` is `lessons`."""

import sys

from vault_index.entrypoints import background

if __name__ == "__main__":
    status = background.main(sys.argv[1:])
    if status is not None:
        sys.exit(status)
    from vault_index.entrypoints.cli import main

    main()
