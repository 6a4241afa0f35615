"""A failed command finds the lesson that helps, and nothing where none does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.files import lesson_text, write
from vault_index.index import reconcile
from vault_index.recall import block
from vault_index.retrieval import failures
from vault_index.text import failure, foreign
from vault_index.vault import Vault

pytestmark = pytest.mark.slow

GREENLET = "sqlalchemy.exc.MissingGreenlet: greenlet_spawn has not been called"
FILES = {
    "development/greenlet.md": lesson_text(
        "SQLAlchemy async: lazy loads",
        "`greenlet_spawn has not been called` means that a lazy attribute was read outside of a session. "
        "Use selectinload.",
    ),
    "devops/helm.md": lesson_text(
        "A helm release that hangs in pending-upgrade",
        "When a deploy is killed half way, helm says `another operation (install/upgrade/rollback) is in "
        "progress`. Roll back to the last good revision.",
    ),
    "devops/inotify.md": lesson_text(
        "Watchers run out on Linux", "Raise `fs.inotify.max_user_watches` in /etc/sysctl.conf."
    ),
    "conventions/dates.md": lesson_text("Dates are UTC", "Store dates in UTC, show local ones."),
    "conventions/names.md": lesson_text("Tables have plural names", "orders, not order."),
}


@pytest.fixture
def vault(make_vault: Callable[..., Vault]) -> Vault:
    """A vault of five lessons, without an embedder."""
    return make_vault(FILES, indexed=True)


def test_the_lesson_that_quotes_the_message_is_first_and_above_the_floor(vault: Vault) -> None:
    found = failures.find(vault, failure.read("pytest tests/api", f"E   {GREENLET}\n1 failed"))
    assert found.hits[0].lesson_id == "development/greenlet"
    assert found.is_above
    found = failures.find(
        vault,
        failure.read(
            "helm upgrade api charts/api",
            "Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress",
        ),
    )
    assert found.hits[0].lesson_id == "devops/helm"
    assert found.is_above


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("cat notes/a.md", "cat: notes/a.md: No such file or directory"),
        ("npm run lint", "npm ERR! Missing script: lint"),
        ("python run.py", "KeyError: 'price'"),
        ("make", ""),
        ("make", "Command timed out after 2m 0.0s"),
    ],
)
def test_a_failure_without_an_answer_gets_nothing(vault: Vault, command: str, output: str) -> None:
    found = failures.find(vault, failure.read(command, output))
    assert not found.is_above
    for near in found.hits[:1]:  # a silence names the figure that was compared with the floor
        assert near.score == found.strength < found.floors.whole


def test_a_failed_assertion_is_the_users_own_unless_a_lesson_names_it(vault: Vault) -> None:
    output = "E   AssertionError: assert 'order' == 'orders'\n1 failed"
    assert not failures.find(vault, failure.read("pytest", output)).is_above
    write(
        vault.lessons_dir / "conventions/rounding.md",
        lesson_text(
            "test_round_price fails at noon", "test_round_price reads the clock: freeze it."
        ),
    )
    reconcile.sync(vault)
    output = "FAILED tests/test_price.py::test_round_price - AssertionError: assert 1 == 2"
    found = failures.find(
        vault, failure.read("pytest", f"E   AssertionError: assert 1 == 2\n{output}")
    )
    assert found.hits[0].lesson_id == "conventions/rounding"
    assert not found.why_silent


def test_a_taught_line_fires_without_a_floor_and_a_silent_one_keeps_out(
    make_vault: Callable[..., Vault],
) -> None:
    taught = FILES | {
        "devops/vpn.md": "---\ntitle: The VPN must be on\n"
        'fires_on_error: ["dial tcp 10.0.0.7:5432: i/o timeout"]\n---\nSwitch it on.\n',
        "devops/helm.md": FILES["devops/helm.md"].replace(
            "---\n", "---\nsilent_on_error: [in progress by a person]\n", 1
        ),
    }
    vault = make_vault(taught, indexed=True)
    found = failures.find(
        vault, failure.read("go test ./...", "db_test.go:31: dial tcp 10.0.0.9:5433: i/o timeout")
    )
    assert found.is_above
    assert (found.hits[0].lesson_id, found.taught) == (
        "devops/vpn",
        "dial tcp 10.0.0.7:5432: i/o timeout",
    )
    assert found.hits[0].percent > 80
    assert found.hits[0].taught_prompt == found.taught
    assert f"({found.hits[0].percent}%)" in block.header(found.hits[0])
    message = "Error: another operation (install/upgrade/rollback) is in progress"
    assert failures.find(vault, failure.read("helm upgrade", message)).is_above
    found = failures.find(vault, failure.read("helm upgrade", f"{message} by a person"))
    assert not found.is_above
    assert (found.hits, found.why_silent) == ([], "silent_on_error of devops/helm")


def test_few_failures_of_others_get_anything(vault: Vault) -> None:
    others = foreign.failures()
    assert len(others) > 150
    assert all(each.command for each in others)
    found = [failures.find(vault, each) for each in others]
    assert sum(each.is_above for each in found) <= 0.04 * len(others)
    assert sum(each.is_above or each.is_line for each in found) <= 0.2 * len(others)
