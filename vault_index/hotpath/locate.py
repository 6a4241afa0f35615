"""Where the vault is: named, around a folder, or the user's default. Nothing else looks for one.

On the path of every prompt, so it works on strings: pathlib takes as long to load as all the rest.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing takes 3 ms to load
if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = "lessons"
SETTINGS = "vault.toml"


def find(named: str | None, folder: str, environ: Mapping[str, str]) -> str | None:
    """Return the root of a vault, the folder that holds `lessons/`; None without one.

    `named` is a path in or below it, else `$LESSONS_VAULT` is; a path that does not exist is a typo
    and not the vault around it. Where neither is given: the nearest vault from `folder` upwards, else
    the `vault` of the user's settings. Raises ValueError if those are not TOML, OSError if they
    cannot be read.
    """
    named = named or environ.get("LESSONS_VAULT")
    if named:
        place = os.path.expanduser(named)
        return around(place) if os.path.exists(place) else None
    return around(folder) or _default(environ)


def around(folder: str) -> str | None:
    """Return the root of the nearest vault, from a folder upwards; None without one.

    A `lessons` that is a link is no vault: it may lead to anything of the user's.
    """
    here = os.path.abspath(folder)
    while True:
        if _is_vault(f"{here}/{FOLDER}"):
            return here
        above, name = os.path.split(here)
        if name == FOLDER and _is_vault(here):
            return above
        if above == here:
            return None
        here = above


def home_folder(environ: Mapping[str, str]) -> str:
    """Return the user's folder: `$LESSONS_HOME`, else `~/.lessons`."""
    return os.path.expanduser(environ.get("LESSONS_HOME") or "~/.lessons")


def _is_vault(folder: str) -> bool:
    return os.path.isfile(f"{folder}/{SETTINGS}") and not os.path.islink(folder)


def _default(environ: Mapping[str, str]) -> str | None:
    path = f"{home_folder(environ)}/config.toml"
    if not os.path.isfile(path):
        return None
    import tomllib

    with open(path, "rb") as file:
        chosen = tomllib.load(file).get("vault")
    return around(os.path.expanduser(chosen)) if isinstance(chosen, str) else None
