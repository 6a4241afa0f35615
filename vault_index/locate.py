"""Where the vault is: named, around a folder, or the user's default.

On the path of every prompt, so it works on strings: pathlib takes as long to load as all the rest.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing takes 3 ms to load
if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = "lessons"
SETTINGS = "vault.toml"


def walk_up(start: str) -> str | None:
    """Find the nearest folder, from here upwards, with `lessons/vault.toml`.

    A `lessons` that is a link is no vault: it may lead to anything of the user's.
    """
    here = os.path.abspath(start)  # noqa: PTH100
    while True:
        if _is_vault(f"{here}/{FOLDER}"):
            return here
        above, name = os.path.split(here)
        if name == FOLDER and _is_vault(here):
            return above
        if above == here:
            return None
        here = above


def _is_vault(folder: str) -> bool:
    return os.path.isfile(f"{folder}/{SETTINGS}") and not os.path.islink(folder)  # noqa: PTH113, PTH114


def home_folder(environ: Mapping[str, str]) -> str:
    """Give the user's folder: `$LESSONS_HOME`, else `~/.lessons`."""
    return os.path.expanduser(environ.get("LESSONS_HOME") or "~/.lessons")  # noqa: PTH111


def for_hook(folder: str, environ: Mapping[str, str]) -> str | None:
    """Find the vault of the folder an agent works in, as `open_vault` would; None without one."""
    named = environ.get("LESSONS_VAULT")
    if named:
        place = os.path.expanduser(named)  # noqa: PTH111
        return walk_up(place) if os.path.exists(place) else None  # noqa: PTH110
    found = walk_up(folder if os.path.isdir(folder) else os.getcwd())  # noqa: PTH109, PTH112
    return found or _default(environ)


def _default(environ: Mapping[str, str]) -> str | None:
    path = f"{home_folder(environ)}/config.toml"
    if not os.path.isfile(path):  # noqa: PTH113
        return None
    import tomllib

    with open(path, "rb") as file:  # noqa: PTH123
        chosen = tomllib.load(file).get("vault")
    return walk_up(os.path.expanduser(chosen)) if isinstance(chosen, str) else None  # noqa: PTH111
