"""Names in lessons: category paths, their tree, how sure a team is, headings and slugs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from vault_index.errors import VaultError
from vault_index.text.blocks import composed

CategoryPath = str  # lower case, parts joined by "/", no leading or trailing slash

MAX_DEPTH = 4  # category_l0 .. category_l3: the level columns of the index
UNCATEGORIZED: CategoryPath = "uncategorized"
NO_CATEGORY = "."  # what a person names for a lesson that belongs in none
COURSES: CategoryPath = "courses"  # of imported ones

DEFAULT_TAXONOMY: tuple[CategoryPath, ...] = (
    "development/frontend",
    "development/backend",
    "development/tooling",
    "devops/ci-cd",
    "devops/docker",
    "devops/deployment",
    "devops/monitoring",
    "product-management",
    "workflow/claude-code",
    "workflow/debugging",
    "workflow/code-review",
    "conventions",
)

# folders named after where a lesson came from, not after its subject
GENERIC_FOLDERS = frozenset(
    "draft drafts imported import inbox lesson misc notes todo tmp unfiled unsorted".split()
    + [UNCATEGORIZED]
)

DEFAULT_CONFIDENCE = 3  # of 1 to 5, how sure a team is: neither lifts nor lowers a hit
CLASSIFIER = "classifier"  # as `filed_by`: nobody has accepted the categories

_NOT_ALLOWED = re.compile(r"[^\w.+#-]+")


def normalise(raw: str) -> CategoryPath:
    """Return the only spelling of a category: `" DevOps / CI CD/"` -> `"devops/ci-cd"`; "" if empty."""
    # without dots at the ends: a folder `.net` would be hidden, and `..` leads out of the vault
    parts = (_NOT_ALLOWED.sub("-", part.lower()).strip("-.") for part in composed(raw).split("/"))
    return "/".join(part for part in parts if part)


def checked(raw: str) -> CategoryPath:
    """Return the only spelling of a category. Raises VaultError for a text that names none."""
    path = normalise(raw)
    if not path:
        raise VaultError(f"not a category: {raw!r:.80}", "name one such as devops/ci-cd")
    return path


def checked_folder(raw: str) -> CategoryPath:
    """Return the only spelling of a category that lessons may be filed under. Raises VaultError."""
    path = checked(raw)
    if not is_category(path):
        hint = "name one such as devops/ci-cd, or none"
        raise VaultError(f"{path} is no category: such a folder names no subject", hint)
    from vault_index.lesson import portable  # `lessons --help` loads this module

    portable.refuse_folder(path)
    return path


def from_folder(path: str) -> CategoryPath | None:
    """Return the category that a file's folder names: `devops/ci-cd/heap.md` -> `devops/ci-cd`.

    `path` is relative to the vault's folder. None for a file at its top.
    """
    folder, _, _ = path.rpartition("/")
    return normalise(folder) or None


def of_file(of_lessons: Sequence[Sequence[str]]) -> list[CategoryPath]:
    """Return the categories of a file of several lessons: the branch that the first of each share.

    Those of a single lesson, or of several with the same, are its own.
    """
    filed = [[path for path in map(normalise, each) if path] for each in of_lessons]
    if all(each == filed[0] for each in filed):
        return filed[0] if filed else []
    depths = zip(*(prefixes(each[0]) if each else [] for each in filed), strict=False)
    return [level[0] for level in depths if len(set(level)) == 1][-1:]


def is_category(folder: CategoryPath) -> bool:
    """Whether a folder is a category: `inbox` and `misc` are not, nor the folders below them."""
    return folder.split("/")[0] not in GENERIC_FOLDERS


def prefixes(category: CategoryPath) -> list[CategoryPath]:
    """List a category and its ancestors, shortest first: `a/b/c` -> `[a, a/b, a/b/c]`."""
    parts = category.split("/")
    return ["/".join(parts[: n + 1]) for n in range(len(parts))]


def marked(categories: Iterable[CategoryPath], filed_by: str) -> tuple[str, ...]:
    """Return categories as they are shown: with "?" at the end until somebody has accepted them."""
    mark = "?" if filed_by == CLASSIFIER else ""
    return tuple(f"{category}{mark}" for category in categories)


MAX_OFFERED = 1_100  # characters of categories to choose from: 270 tokens


def offered(categories: Mapping[CategoryPath, str]) -> str:
    """Return categories to choose from, the first with the title of one of their lessons.

    A bare name says too little: `development/tooling/git` got whatever was about a tool of that kind.
    """
    room, listed = MAX_OFFERED - sum(len(path) + 2 for path in categories), []
    for path, title in categories.items():
        about = f" ({title})" if title else ""
        room -= len(about)
        listed.append(f"{path}{about if room >= 0 else ''}")
    return "; ".join(listed)


def words_of(categories: Iterable[CategoryPath]) -> str:
    """Return the words of categories, each once: `devops/ci-cd` has three."""
    named = (re.split(r"[/_-]", path) for path in categories if path != UNCATEGORIZED)
    return " ".join(dict.fromkeys(word for words in named for word in words if word))


def levels(categories: Iterable[CategoryPath]) -> list[list[CategoryPath]]:
    """Return the level columns of a row: for each depth 0..3 the distinct prefixes of that depth."""
    above = [prefixes(category)[:MAX_DEPTH] for category in categories]
    return [
        list(dict.fromkeys(each[depth] for each in above if len(each) > depth))
        for depth in range(MAX_DEPTH)
    ]


def own_counts(of_lessons: Iterable[Iterable[CategoryPath]]) -> dict[CategoryPath, int]:
    """Count lessons at each category itself, not below it, sorted by path."""
    tally = Counter(category for categories in of_lessons for category in set(categories))
    return dict(sorted(tally.items()))


def counts(of_lessons: Iterable[Iterable[CategoryPath]]) -> dict[CategoryPath, int]:
    """Count lessons at or below each category, sorted by path: `{"devops": 3, "devops/docker": 1}`."""
    tally: Counter[CategoryPath] = Counter()
    for categories, lessons in Counter(map(tuple, of_lessons)).items():  # few differ
        above = (prefix for category in categories for prefix in prefixes(category))
        tally.update(dict.fromkeys(above, lessons))
    return dict(sorted(tally.items()))


SECTION = re.compile(r"##[ \t]+Lesson:")
_HEADING = re.compile(r"#{1,6}[ \t]+(?=\S)")
_NOT_SLUG = re.compile(r"[^\w]+")


def slugify(title: str) -> str:
    """Make a file or section name of a title: `"Don't  retry POST"` -> `"don-t-retry-post"`."""
    return _NOT_SLUG.sub("-", composed(title).lower()).strip("-_")[:80].rstrip("-_")


def heading_of(line: str) -> str:
    """Return the title of a heading without its marks; "" for any other line.

    `# Why C#` is "Why C#": a space comes before closing marks.
    """
    mark = _HEADING.match(line)
    return _unmarked(line[mark.end() :]) if mark else ""


def section_of(line: str) -> str | None:
    """Return the title in a line `## Lesson: title`; None for any other line."""
    mark = SECTION.match(line)
    return (_unmarked(line[mark.end() :]) or "Lesson") if mark else None


def has_text(preamble: str) -> bool:
    """Whether text above the first section is a lesson, and not only headings and blank lines."""
    return any(line.strip() and not heading_of(line) for line in preamble.split("\n"))


def free_slug(title: str, numbers: dict[str, int]) -> str:
    """Make a section's name of its title: the first of `heap`, `heap-2`... that is free.

    `numbers` maps each name so far to the number after which to look; the new name is added.
    """
    slug = base = slugify(title) or "lesson"
    number = numbers.get(base, 1)
    while slug in numbers:
        number += 1
        slug = f"{base}-{number}"
    numbers[base] = number
    numbers.setdefault(slug, 1)
    return slug


def _unmarked(title: str) -> str:
    """Remove closing marks from a heading; a regular expression would take quadratic time."""
    title = title.strip(" \t")
    bare = title.rstrip("#")
    return bare.rstrip(" \t") if bare.endswith((" ", "\t")) and bare.strip() else title
