"""Secrets of random values in the forms that their makers give them: each is found and redacted."""

from __future__ import annotations

import base64
import random
import string
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.planted import NO_SECRETS
from vault_index.check import secrets
from vault_index.check.redact import redact

# two hundred sentences, written before the rules were read; benchmarks/operations.txt has others
OPERATIONS = Path(__file__).parent / "operations.txt"
BEFORE, AFTER = "It worked before.\n", "\nand then it failed.\n"
VALUES = 12  # of each template; a form that is missed now and then shows within a few kinds
WORDS_AND_DIGITS = string.ascii_letters + string.digits
BASE64 = WORDS_AND_DIGITS + "+/"
DJANGO = string.ascii_lowercase + string.digits + "!@#$%^&*(-_=+)"
SALT = WORDS_AND_DIGITS + "!@#$%^&*()-_ []{}<>~`+=,.;:/?|"

Make = Callable[[random.Random], str]


def of(letters: str, length: int) -> Make:
    return lambda chance: "".join(chance.choices(letters, k=length))


def password(chance: random.Random) -> str:
    """Return a password of 12 to 16 letters and digits, or a word with a number and a sign."""
    if chance.random() < 0.5:
        word = chance.choice(["Winter", "Soleil", "Falcon", "Lisboa"])
        return (
            f"{word}{chance.choice('-_')}otter{chance.randrange(1000, 2000)}{chance.choice('#&+$')}"
        )
    return "Vq7" + "".join(chance.choices(WORDS_AND_DIGITS, k=chance.randrange(9, 14)))


def uuid_of(chance: random.Random) -> str:
    return str(uuid.UUID(int=chance.getrandbits(128), version=4))


def encoded(chance: random.Random) -> str:
    return base64.b64encode(password(chance).encode()).decode()


def django(chance: random.Random) -> str:
    return chance.choice("!@#$%^&*(-_=+)") + of(DJANGO, 49)(chance)


def passphrase(chance: random.Random) -> str:
    words = chance.sample(["harbor", "lantern", "mosaic", "granite", "otter", "canal"], 3)
    return "-".join([*words, str(chance.randrange(10, 99))])


FORMS: list[tuple[Make, list[str]]] = [
    (password, ["define('DB_PASSWORD', '{}');", 'env("DB_PASSWORD", "{}")', "$dbpass = '{}';",
                "new PDO($dsn, 'app', '{}')", "'db' => ['user' => 'app', 'pass' => '{}'],",
                "requests.get(url, auth=('ci', '{}'))"]),
    (of(SALT, 64), ["define('AUTH_KEY',         '{}');", "define( 'NONCE_SALT', '{}' );"]),
    (django, ["SECRET_KEY = '{}'", 'SECRET_KEY = os.environ.get("SECRET_KEY", "{}")']),
    (password, ["Le mot de passe de la base est {}.", "On se connecte avec le mot de passe `{}`.",
                "Le mdp du wifi c'est {}", "J'ai remis le mot de passe à {} hier."]),
    (password, ["La contraseña es {}", "Entra con admin y la contraseña {} en staging.",
                "La contraseña sigue siendo {} hasta el lunes.", "La clave del router es {}"]),
    (password, ["La password del database è {}.", "A senha continua sendo {} até sexta.",
                "Das Passwort bleibt {} bis Freitag.", "Zugang: admin / `{}`"]),
    (password, ["We set the root password to {} yesterday.", "The staging login is admin and `{}`",
                "Use `{}` when it asks for the password.", "credentials are admin / `{}`",
                "> what do I type to log in?\n> admin and then `{}`"]),
    (of(BASE64, 40), ["The secret access key of the exporter: {}", "Secret access key\n{}",
                      "The key id is AKIA..., the secret `{}`"]),
    (password, ["The ftp login is mirror:{}", "The account lab-reader / {} opens the camera.",
                "Log in as ops@corp.internal: {}", "User lab and {} are for the printer."]),
    (passphrase, ["The passphrase of the key (~/.ssh/deploy) is {}, as ever.",
                  "For root on the NAS use {} (not that of the web page).",
                  "WLAN heißt lab, Schlüssel ist {}."]),
    (uuid_of, ["HEROKU_API_KEY={}", "The API key for Heroku is {}.", "snyk auth {}",
               "machine api.heroku.com\n  login me@corp.internal\n  password {}",
               '"client_secret": "{}"', "X-Postmark-Server-Token: {}"]),
    (of("0123456789abcdef", 32),
     ["TWILIO_ACCOUNT_SID=AC5f0c2b9d7e8a41636f0c2b9d7e8a4163\nTWILIO_AUTH_TOKEN={}",
      "The account is AC5f0c2b9d7e8a41636f0c2b9d7e8a4163, its token {}.",
      "Client('AC5f0c2b9d7e8a41636f0c2b9d7e8a4163', '{}')"]),
    (encoded, ["//npm.internal/:_password={}", "_auth={}", "kind: Secret\ndata:\n  password: {}"]),
    (password, ["keytool -storepass {} -list", "openssl enc -d -k {} -in a.enc", "requirepass {}",
                "docker login -u ci -p {} registry.internal", "mysql -u root -p{} shop",
                "curl -u ci:{} https://artifacts.internal", "lftp -u ci,{} sftp.internal",
                "SET PASSWORD FOR app = PASSWORD('{}');", "default login ci password {}",
                '<property name="connection.password">{}</property>',
                "- {{ name: DB_PASSWORD, value: {} }}", "user,password\nci,{}"]),
]  # fmt: skip
CASES = [(make, template) for make, templates in FORMS for template in templates]


@pytest.mark.parametrize(("make", "template"), CASES, ids=[template for _, template in CASES])
def test_random_values_are_found_and_redacted(make: Make, template: str) -> None:
    chance = random.Random(template)
    values = [make(chance) for _ in range(VALUES)]
    missed = []
    for value in values:
        text = BEFORE + template.format(value) + AFTER
        begin, end = text.index(value), text.index(value) + len(value)
        spans = secrets.spans(text)
        is_covered = any(first <= begin and end <= last for first, last, _ in spans)
        if not is_covered or not list(secrets.findings("a.md", text)) or value in redact(text):
            missed.append(value)
    assert missed == []


@pytest.mark.parametrize(
    "text",
    [
        *NO_SECRETS,
        # text that only speaks of secrets
        "docker login with --password-stdin, since -p leaves the password in the history.",
        "Run docker login without -p because it stays in the history.",
        "sshpass -p exposes it; redis-cli -a prints a warning; openssl enc -k leaks.",
        "Pass --password as the last flag; -p asks for the password.",
        "curl -u user:pass leaks into the history, use curl --netrc instead.",
        "The password is in 1Password under Staging2024.",
        "Le mot de passe est dans le coffre, voir Bitwarden.",
        "La contraseña está en el gestor, entrada staging-db-2024.",
        "Das Passwort steht im Tresor unter Staging-DB2.",
        "Passwords such as Summer2024! are guessed first.",
        "The password is hashed with PBKDF2-HMAC-SHA256 by OAuth2Client.",
        "Log in to Windows2019 with SSO; the admin console runs on Node18+.",
        "The secret key is read by SecretsManagerClient.getSecretValue2Async().",
        "The primary key is a UUID such as 1f7c2a90-5b3e-4d18-9c62-7ae04b51d3f8.",
        "Heroku logged request_id=1f7c2a90-5b3e-4d18-9c62-7ae04b51d3f8 with the token removed.",
        "cache key: node-modules-3c7e5646ab0d8f5f3f1c7d0f0f2a0a7f6f2c1b9e",
        "Pin the action: uses: actions/checkout@3c7e5646ab0d8f5f3f1c7d0f0f2a0a7f6f2c1b9e",
        "define('DB_PASSWORD', getenv('WORDPRESS_DB_PASSWORD'));",
        "define('AUTH_KEY', 'put your unique phrase here');",
        "SECRET_KEY = '${DJANGO_SECRET_KEY_2}'",
        "password: <password>, password: changeme, password: $DB_PASSWORD, password: {{ pw_2024 }}",
        "| field | password |\n|---|---|\n| rule | at least 12 |",
        # names of files, secrets and places
        'credentials_path = "meter-reader-9f2c41d07b.json"',  # a file
        "The secret in the store is called `quarry-gate-api-key-v3-eu-north`.",  # its name there
        "DATABASE_URL=postgres://docker:docker-password@db.internal:5432/app",
        "DATABASE_URL=postgres://user_1:123456789012345@10.0.0.1/app",
        "| client.example.dev/user-image | eu.gcr.io/mill-481203/mill |",
        'reply("User-agent: *\\nDisallow: /admin1")',
        "https://docs.example.org/login#:~:text=Enter%20your%20Password%20and%20press,here2",
        "The token's run is called by its id:   3f9a0c1e-5b7d-4c2a-9e8f-0a1b2c3d4e5f",
        "https://app.example.org/callback?code=731-Kd82_lqPz7VbN4tYw1",  # once, for a minute
        'tokenizer = "o200k_base"',
        'secrets: client_id "k2WbT8qLx0pRm3Zt5uVn7Yc1"',
        "The job that made it had the token: 3f9a0c1e-5b7d-4c2a-9e8f-0a1b2c3d4e5f as its id.",  # P21
        "Its token: 3f9a0c1e-5b7d-4c2a-9e8f-0a1b2c3d4e5f (the id of the batch).",
        "Build token = 3f9a0c1e-5b7d-4c2a-9e8f-0a1b2c3d4e5f, which is only the build's id",
        "The signing key is stored as harbour-crane-signing-2025-11-east.",
        "Der Schlüssel heißt muehle-torweg-zugang-v3-nord.",
        "SECRET_KEY_BASE=abc123efg456",  # typed in a row
        "api_key: 'wxyz6789abcd'",
        "session_secret = mnopq45678",
        "> Authorization: Basic dXNlcm5hbWU6cGFzc3dvcmQK",  # username:password
        "> Authorization: Basic YWRtaW46Y2hhbmdlbWU=",
        "X-Api-Key: eW91ci1hcGkta2V5LWhlcmU=",
    ],
)
def test_what_is_no_secret_is_no_finding(text: str) -> None:
    assert list(secrets.findings("a.md", text)) == []


@pytest.mark.parametrize("sentence", OPERATIONS.read_text("utf-8").splitlines())
def test_a_sentence_of_operations_is_no_secret(sentence: str) -> None:
    """Issue 55 B: images, digests, roles, branches, pods and hosts beside log, user and account."""
    assert list(secrets.findings("a.md", f"# A note\n\n{sentence}\n")) == []


@pytest.mark.parametrize(
    "text",
    [
        'credentials = "k2WbT8qLx0pRm3Zt5uVn"',
        "The secret key is `quarry-Gate-9fK2-x7Lq`.",
        "> Authorization: Basic YWRtaW46azJXYlQ4cUx4",
        "SECRET_KEY_BASE=abc1qZ7efk4w5",
        "The api token: 3f9a0c1e-5b7d-4c2a-9e8f-0a1b2c3d4e5f. It has an id.",
        "The signing key is stored as hQ7-crane-9xK2-signing-Zt51-east.",
        "DATABASE_URL=postgres://docker:k2WbT8qLx0pR@db.internal:5432/app",
        'secrets: client_id "ledger", client_secret: "k2WbT8qLx0pRm3Zt5uVn7Yc1"',
    ],
)
def test_what_stands_beside_such_names_is_one(text: str) -> None:
    assert list(secrets.findings("a.md", text))
