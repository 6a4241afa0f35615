"""No secret reaches the journal, and ordinary text does."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.planted import NO_SECRETS, SECRETS
from vault_index.check import pattern, secrets
from vault_index.check.redact import redact

EXAMPLES = [
    match.replace("¦", "") for rule in pattern.load("secrets") for match in rule.match
]  # which the patterns hold in two pieces
BEFORE, AFTER = "It worked before.\n" * 30, "\nand then it failed.\n" * 30


@pytest.mark.slow
def test_no_planted_secret_is_left() -> None:
    for text in SECRETS + EXAMPLES:
        of_rules = [text[begin:end] for begin, end, _ in secrets.spans(text, strict=True)]
        redacted = redact(BEFORE + text + AFTER)
        assert of_rules
        assert "[redacted: " in redacted, text
        assert not any(secret in redacted for secret in of_rules), redacted
        assert redacted.startswith(BEFORE), redacted
        assert redacted.endswith(AFTER), redacted


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("The deploy user's key is AKIAZK7Q2MXW4NB3VLTE.",
         "The deploy user's key is [redacted: aws key]."),
        ('{"password": "drift velvet"}', '{"password": "[redacted: secret]"}'),
        ('{\\"db_password\\": \\"drift,velvet\\"}', '{\\"db_password\\": \\"[redacted: secret]\\"}'),
        ("DB_PASSWORD=swordfish make", "DB_PASSWORD=[redacted: secret] make"),
        ("pass: drift-velvet", "pass: [redacted: secret]"),
        ("run --token=plumtree9", "run --token=[redacted: secret]"),
        ("sshpass -p swordfish ssh ci@host", "sshpass -p [redacted: secret] ssh ci@host"),
        ("mysql -u root -pswordfish shop", "mysql -u root -p[redacted: secret] shop"),
        ("It printed 7Hq2mXw4Nb3vLtE9pRzK8c.", "It printed [redacted: random text]."),
        ("-----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7Hq2mX\nw4Nb3vLt\n-----END PRIVATE KEY-----",
         "[redacted: private key]"),
        ("w4Nb3vLt\nkJHd7Qa9Zx==\n-----END PRIVATE KEY-----",
         "[redacted: private key]\n-----END PRIVATE KEY-----"),
        ("- name: DB_PASSWORD\n  value: OldHunter77xyz\n- name: LOG",
         "- name: DB_PASSWORD\n  value: [redacted: secret]\n- name: LOG"),
        ("- name: ENCRYPTION_KEY  # of rows\n  value: drift-velvet",
         "- name: ENCRYPTION_KEY  # of rows\n  value: [redacted: secret]"),
        ('variable "db_password" {\n  type = string\n  sensitive = true\n  default = "drift velvet"\n}',
         'variable "db_password" {\n  type = string\n  sensitive = true\n'
         '  default = "[redacted: secret]"\n}'),
        ("<name>db.password</name>\n  <value>OldHunter77xyz</value>",
         "<name>db.password</name>\n  <value>[redacted: secret]</value>"),
        ('{"key": "DB_PASSWORD",\n "value": "OldHunter77xyz"}',
         '{"key": "DB_PASSWORD",\n "value": "[redacted: secret]"}'),
        ('"ParameterKey": "DbPassword",\n"ParameterValue": "OldHunter77xyz"',
         '"ParameterKey": "DbPassword",\n"ParameterValue": "[redacted: secret]"'),
    ],
)  # fmt: skip
def test_a_secret_is_replaced_by_what_it_was(text: str, redacted: str) -> None:
    assert redact(text) == redacted


@pytest.mark.parametrize(
    "text",
    [
        *(text for text in NO_SECRETS if "AKIA" not in text),
        "--- PASS: TestAnnotateLeaseFailureWrapsStaleInfo/stale_info_with_detail (0.00s)",
        "git show 3c7e5646ab0d8f5f3f1c7d0f0f2a0a7f6f2c1b9e -- src/components/Button2/index.tsx",
        ".git/objects/pack/pack-171ad3e8d74e4d94f4a94daa621d1dc4f7784d94.idx",
        "session 0f3a2b91-7c4d-4e5f-8a6b-1c2d3e4f5a6b, claude-sonnet-4-5-20250929, v1.2.3-beta.4",
        "if errors.Is(err, git.NoErrAlreadyUpToDate) { return handleUserAuthenticationToken2(ctx) }",
        "numpy-1.26.4-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
        "def login(user: str, password: str) -> Token: ...",
        "docker login with --password-stdin, since -p leaves the password in the history.",
        "mysql -u root -p shop; ssh -p 2222 ci@host; sshpass -p exposes it",
        "password = getpass.getpass()\ntoken = await store.refresh_token(user)",
        "https://github.com/team/repo/blob/main/docs/a-long-name-of-a-page-2.md?plain=1#L20",
        "- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef: {name: db}\n- name: LOG\n  value: debug-2x",
        "- name: DB_PASSWORD\n- name: LOG\n  value: debug2024x",
        'variable "db_password" {\n  type = string\n}\nvariable "region" {\n  default = "eu-west-1"\n}',
        "- name: DB_PASSWORD\n  value: ${DB_PASSWORD}",
        "const { token, password } = req.body; // tokens: 4096",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.slow
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.one_of(
            st.sampled_from(SECRETS + EXAMPLES),
            st.sampled_from(
                ["password", "token = ", "is", ": ", "[redacted: secret]", "'", "\n", "the user"]
            ),
            st.text(max_size=8),
        ),
        max_size=6,
    ).map(" ".join)
)
def test_twice_is_as_good_as_once(text: str) -> None:
    assert redact(redact(text)) == redact(text)


def test_characters_that_no_file_holds_are_replaced() -> None:
    assert (
        redact("half \ud83d, none \0, whole \U0001f600")
        == "half \ufffd, none \ufffd, whole \U0001f600"
    )


@pytest.mark.slow
def test_hostile_text_takes_no_longer_than_long_text() -> None:
    for piece in ("password = '", "-----BEGIN PRIVATE KEY-----\n", "https://a:", "docker login ",
                  "user: ", "password\n", "password {\n default", "x\n-----END PRIVATE KEY",
                  "a1/=\n" * 99 + "-----END PRIVATE KEY-----\n", "a1.", "é", "-- ",
                  "--token "):  # fmt: skip
        began = time.process_time()
        redact(piece * (50_000 // len(piece)))
        assert time.process_time() - began < 3, piece
