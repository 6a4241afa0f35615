"""Changes to lesson files: init, add, update, delete, rename, import, accept.

Here a vault is made: a git repository, its settings, the index ignored.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from vault_index import files, git
from vault_index.errors import WriteError
from vault_index.lesson import category
from vault_index.text import words
from vault_index.vault import FOLDER, INDEX, SETTINGS, refuse_odd, refuse_submodules

_SETTINGS = """\
# This vault's settings; every key is optional. `lessons config` shows what is in force.

# prompt_lessons = 3             # at most so many lessons a prompt
# prompt_tokens = 600            # at most so many tokens a prompt (4 characters each)
# token_budget = 2000            # at most so many tokens at the start of a session
# session_sources = ["startup", "clear", "compact"]  # also: resume, fork
# floor = 0.65                   # score below which nothing is injected; default: the model's
# prompt_skills = 1              # at most so many skills suggested for a prompt; 0 for none

# The categories this vault means to use, besides the ones its lessons have.
taxonomy = [
{taxonomy}
]

# [keywords]                     # phrases that file a lesson without a category
# "GitHub Actions" = "devops/ci-cd"
""".format(taxonomy="\n".join(f'  "{each}",' for each in category.DEFAULT_TAXONOMY))
MAX_READ, MAX_READ_BYTES = 200, 4000  # lessons that are looked at, and so much of each
FOREIGN_SHARE = 0.1  # of them in another language


@dataclass(frozen=True, slots=True)
class InitResult:
    """The steps that `init` took, `ignored` as lines of .gitignore; empty if it was done before."""

    repository: bool
    vault: bool
    ignored: tuple[str, ...]
    is_foreign: bool  # whether some of its lessons are in another language than English


def init(folder: Path) -> InitResult:
    """Make a vault in a folder: a git repository, `lessons/vault.toml`, a .gitignore.

    Existing files stay as they are, so a second run changes nothing. Raises WriteError, NoVaultError.
    """
    refuse_odd(folder)
    refuse_submodules(folder)
    with files.writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    settings = folder / FOLDER / SETTINGS
    files.refuse_links(settings.parent, folder)
    files.read_if_any(folder / ".gitignore")  # refuses before anything is made
    repository = git.start_repository(folder)
    created = files.create_file(settings, _SETTINGS.encode(), within=folder)
    lines = (f"{INDEX}/", files.IGNORED)
    ignored = [line for line in lines if files.add_line(folder / ".gitignore", line)]
    return InitResult(repository, created, tuple(ignored), _is_foreign(settings.parent))


def _is_foreign(folder: Path) -> bool:
    foreign = []
    for file in islice(folder.rglob("*.md"), MAX_READ):
        with suppress(WriteError):  # a link, which is no lesson
            data = files.read_if_any(file, MAX_READ_BYTES) or b""
            foreign.append(words.is_foreign(data.decode("utf-8", "replace")))
    return sum(foreign) > FOREIGN_SHARE * len(foreign)
