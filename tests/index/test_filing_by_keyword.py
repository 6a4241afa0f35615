"""A lesson without a category is filed by the words of its title, also once a vault is used."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.files import MakeVault, lesson_text, write
from vault_index.edit import init
from vault_index.index import classifier, reconcile
from vault_index.lesson.category import DEFAULT_TAXONOMY, UNCATEGORIZED
from vault_index.vault import Vault, open_vault

# titles, and where somebody looks for them who knows the default tree
NEW = {
    "CI pipeline runs out of disk": "devops/ci-cd",
    "ENOMEM in the CI env": "devops/ci-cd",
    "CI needs the npm token": "devops/ci-cd",
    "GitHub Actions loses its cache between branches": "devops/ci-cd",
    "Our Docker image has 2 GB": "devops/docker",
    "Helm rollback keeps the old config map": "devops/deployment",
    "Grafana shows gaps after a restart": "devops/monitoring",
    "A Prometheus alert fires twice": "devops/monitoring",
    "Jira tickets need the customer field": "product-management",
    "A transition in Jira fails with 400": "product-management",
    "No user story without acceptance criteria": "product-management",
    "A CSS grid collapses in Safari": "development/frontend",
    "Each React component renders twice": "development/frontend",
    "The REST API returns 500 for an empty page": "development/backend",
    "ESLint does not see the root": "development/tooling",
    "Claude Code ignores the hook": "workflow/claude-code",
    "A pull request without a test is sent back": "workflow/code-review",
    "The naming convention of feature flags": "conventions",
    "Deploys hang without the VPN": UNCATEGORIZED,
    "Soak the peas overnight": UNCATEGORIZED,
}
# a vault in use: a tree of its own beside parts of the default one
OTHERS = (
    *["billing/invoices"] * 4,
    *["messaging/kafka"] * 4,
    *["data/warehouse"] * 4,
    *["devops/docker"] * 3,
    *["devops/deployment/kubernetes"] * 3,
    *["workflow/debugging"] * 2,
)


def vault_of_init(folder: Path) -> Vault:
    init(folder)
    return open_vault(folder)


def add_others(vault: Vault) -> None:
    for number, category in enumerate(OTHERS):
        text = lesson_text(f"Heron {number}", f"Set the heron to {number}.")
        write(vault.lessons_dir / category / f"{number}.md", text)


def filed(vault: Vault) -> dict[str, str]:
    """Return where each title of lessons without a category is filed."""
    vault = open_vault(vault.root)
    reconcile.sync(vault)
    return {each.title: each.categories[0] for each in classifier.propose(vault)}


def test_filing_by_keyword_goes_on_once_a_vault_is_used(tmp_path: Path, text_only: None) -> None:
    """Issue 55, 8: of twenty lessons as many are right after twenty others came in."""
    vault = vault_of_init(tmp_path)
    for number, title in enumerate(NEW):
        write(vault.lessons_dir / f"{number}.md", lesson_text(title, "This is how we do it."))
    assert filed(vault) == NEW
    add_others(vault)
    assert filed(vault) == NEW


@pytest.mark.slow
def test_a_keyword_in_the_title_beats_likeness(tmp_path: Path, with_model: Path) -> None:
    """Issue 55, 8: it went to `devops/docker`, 85% alike, though `vault.toml` names `devops/ci-cd`."""
    vault = vault_of_init(tmp_path)
    add_others(vault)
    near = lesson_text("Old image layers fill the disk", "Prune them: the host runs out of disk.")
    write(vault.lessons_dir / "devops/docker/layers.md", near)
    text = "The runner keeps old image layers. Prune them before the build."
    write(vault.lessons_dir / "new.md", lesson_text("CI pipeline runs out of disk", text))
    assert filed(vault) == {"CI pipeline runs out of disk": "devops/ci-cd"}


@pytest.mark.parametrize(
    ("used", "taxonomy", "title", "wanted"),
    [
        # the branches above a used category are in use
        ("devops/ci-cd/github", (), "CI pipeline runs out of disk", "devops/ci-cd"),
        ("devops/podman", (), "CI pipeline runs out of disk", "devops"),
        # vault.toml counts however few lessons it has
        ("kitchen", ("devops/ci-cd", "kitchen"), "ENOMEM in the CI env", "devops/ci-cd"),
        ("kitchen", ("product-management/jira",), "Jira forgets a field", "product-management"),
        # where a vault calls a category by the name, that one is meant
        ("docker", DEFAULT_TAXONOMY, "Our Docker image has 2 GB", "docker"),
        ("tools/github-actions", DEFAULT_TAXONOMY, "GitHub Actions waits", "tools/github-actions"),
        ("team/jira", DEFAULT_TAXONOMY, "Jira forgets a field", "team/jira"),
        # of a tree that is in no use and no settings nothing is said
        ("kitchen", (), "Jira forgets a field", UNCATEGORIZED),
    ],
)
def test_what_is_used_or_named_is_allowed_with_its_branches(
    used: str, taxonomy: tuple[str, ...], title: str, wanted: str
) -> None:
    filed = [[used]] * classifier.YOUNG_VAULT
    learned = classifier.Classifier(None, filed, [""] * len(filed), taxonomy=taxonomy)
    assert learned.classify(title, "This is how we do it.", None).categories == (wanted,)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("When the frontend CI build fails with ENOMEM, raise the heap.", "devops/ci-cd"),
        ("Raise the heap. It also helps in CI.", UNCATEGORIZED),
        ("Raise the heap:\n\n```sql\nselect 1\n```", UNCATEGORIZED),
        ("Raise the heap. Kubernetes kills the pod else.", "devops/deployment"),
    ],
)
def test_a_phrase_in_the_text_counts_outside_code_and_a_short_one_in_the_first_sentence(
    text: str, wanted: str
) -> None:
    learned = classifier.Classifier(None, [], [], taxonomy=DEFAULT_TAXONOMY)
    found = learned.classify("Out of memory", text, None)
    assert found.categories == (wanted,)
    assert found.sure < 1


def test_the_vaults_own_phrases_come_first_wherever_they_stand(make_vault: MakeVault) -> None:
    text = lesson_text("CI pipeline waits", "It stands in the queue of the heron.")
    vault = make_vault({"a.md": text, "vault.toml": '[keywords]\nheron = "payments"\n'})
    assert filed(vault) == {"CI pipeline waits": "payments"}
