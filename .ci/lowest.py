"""Print the lowest version that `pyproject.toml` allows of each dependency, as constraints for pip."""

import re
import sys
import tomllib
from pathlib import Path

LOWEST = re.compile(r"^([\w.-]+)(?:\[[\w,]+\])?>=([\d.]+)")
PROJECT = Path(__file__).parent.parent / "pyproject.toml"


def main() -> None:
    """Print the lowest version of each dependency, also of the extras named as arguments."""
    project = tomllib.loads(PROJECT.read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    listed = [*project["dependencies"], *(each for name in sys.argv[1:] for each in extras[name])]
    for found in filter(None, map(LOWEST.match, listed)):
        print(f"{found[1]}=={found[2]}")


if __name__ == "__main__":
    main()
