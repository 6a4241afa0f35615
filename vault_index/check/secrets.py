"""Keys, tokens, passwords and connection strings, which no lesson may carry.

The rules of detect-secrets (its network checks are never run), and our own for what it does not
know: services that came later, and the ways in which people write a password in prose. A value that
is plainly a placeholder is none.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from vault_index.check.finding import Finding, line_of_key, matches
from vault_index.errors import LessonError
from vault_index.lesson import split_frontmatter

# Forms of keys as their makers document them: the prefix says whose it is.
_FORMS = {
    "an AWS key": r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b",
    "an AWS secret key": r"(?i)aws.{0,30}secret.{0,30}?[\"'=:\s]([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])",
    "a GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,})",
    "a GitLab token": r"\bgl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|imt)-[\w-]{20,}",
    "a Slack token": r"\bx(?:ox[abeprs]|app)-[\w-]{10,}",
    "a Slack webhook": r"hooks\.slack\.com/(?:services|workflows)/\w+/\w+/\w+",
    "a Discord webhook": r"discord(?:app)?\.com/api/webhooks/\d+/[\w-]{40,}",
    "a Teams webhook": r"webhook\.office\.com/webhookb2/[\w@-]+/IncomingWebhook/\w+",
    "a Stripe key": r"\b(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}|\bwhsec_[A-Za-z0-9+/]{24,}",
    "a Google API key": r"\bAIza[\w-]{35}",
    "a Google OAuth token": r"\bya29\.[\w-]{20,}|\bGOCSPX-[\w-]{20,}",
    "an Anthropic key": r"\bsk-ant-[\w-]{20,}",
    "an OpenAI key": r"\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{32,}",
    "a Hugging Face token": r"\bhf_[A-Za-z0-9]{30,}",
    "an npm token": r"\bnpm_[A-Za-z0-9]{36}|_authToken\s{0,9}=\s{0,9}[\"']?[\w/+=-]{20,}",
    "a PyPI token": r"\bpypi-AgE[\w-]{50,}",
    "a SendGrid key": r"\bSG\.[\w-]{16,}\.[\w-]{16,}",
    "a Twilio key": r"\bSK[0-9a-f]{32}\b",
    "a Mailgun key": r"\bkey-[0-9a-f]{32}\b",
    "a Mailchimp key": r"\b[0-9a-f]{32}-us\d{1,2}\b",
    "a DigitalOcean token": r"\bdo[opr]_v1_[0-9a-f]{64}\b",
    "a Databricks token": r"\bdapi[0-9a-f]{32}\b",
    "a HashiCorp token": r"\bhv[sbr]\.[\w-]{24,}|\b[\w]{14}\.atlasv1\.[\w-]{60,}",
    "a Docker token": r"\bdckr_[po]at_[\w-]{20,}",
    "an Azure key": r"(?i)(?:AccountKey|SharedAccessKey)=[A-Za-z0-9+/]{40,}={0,2}",
    "an Azure signature": r"(?<=[?&])sig=[A-Za-z0-9%+/]{40,}",
    "a Shopify token": r"\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}\b",
    "a Square token": r"\bsq0(?:atp|csp)-[\w-]{22,}|\bEAAA[\w-]{60}",
    "a Telegram token": r"(?<!\d)\d{8,10}:AA[\w-]{32,}",
    "a Linear, Notion or Postman key": r"\blin_api_\w{32,}|\bntn_\w{40,}|\bPMAK-[0-9a-f-]{50,}",
    "a Grafana, Sentry or New Relic key": r"\bgl(?:sa|c)_\w{30,}|\bsntrys_\w{40,}|\bNRAK-[A-Z0-9]{27}",
    "an Airtable token": r"\bpat\w{14}\.[0-9a-f]{64}\b",
    "an Atlassian token": r"\bATATT3x[\w=-]{50,}",
    "a Supabase, PlanetScale or Doppler key": r"\bsbp_[0-9a-f]{40}|\bpscale_\w+_[\w.-]{30,}|\bdp\.pt\.\w{40,}",
    "a Facebook token": r"\bEAACEdEose0cBA\w{20,}",
    "a Fly.io token": r"\bfo1_[\w-]{40,}|\bFlyV1 fm\d_[\w+/=,]{40,}",
    "an age key": r"\bAGE-SECRET-KEY-1[A-Z0-9]{50,}",
    "a private key": r"-----BEGIN (?:[A-Z0-9 ]+ )?PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-\d",
    "a JSON web token": r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{20,}",
}  # fmt: skip
_VALUE = r"(?P<value>[^\s\"'`,;)<>|]{6,})"
# A word that says what follows, then a value: only one that looks made by a machine or a careful
# person counts (see _is_random).
_SAID = {
    "a password in a connection string": r"(?i)\b[a-z][\w+.-]*://(?P<user>[^\s:/@\"'<>]*):(?!(?P=user)@)"
    r"(?P<value>[^\s/@\"'<>`]{3,})@[\w.\[-]",
    "a password in a connection string ": r"(?i)(?:server|host|data source|user id|uid)\s*=[^;\n]{1,200};"
    r"[^\n]{0,300}?\b(?:password|pwd)\s*=\s*(?P<value>[^;\s\"'`]{4,})",
    "a password on a command line": r"(?i)(?:\bmysql(?:dump|admin)?\b[^\n]{0,300}\s-p(?!\s)|\bsshpass\s+-p\s*"
    r"|\bcurl\b[^\n]{0,300}\s(?:-u|--user)\s*[\"']?[\w.@-]+:|\bredis-cli\b[^\n]{0,300}\s-a\s+"
    r"|\b(?:docker|podman|helm)[^\n]{0,300}login\b[^\n]{0,300}\s(?:-p|--password)[\s=]+)[\"']?"
    + _VALUE,
    "a credential in a header": r"(?i)\b(?:authorization|x-api-key|x-auth-token|private-token)"
    r"[\"']?\s*[:=]\s*[\"']?(?:bearer|basic|token|apikey)?\s*" + _VALUE,
    "a password in a netrc line": r"(?i)\bmachine\s+\S+\s+login\s+\S+\s+password\s+" + _VALUE,
    "a secret": r"(?i)(?:\b|_)(?:pass(?:word|wd|phrase)?|pwd|pw|secret|token|api[_-]?key|apikey|auth[_-]?key"
    r"|access[_-]?key|private[_-]?key|encryption[_-]?key|signing[_-]?key|client[_-]?secret|credentials?"
    r")(?:[_-]?\w+)?[\"'`*]*\s*(?::=|=>|={1,3}|:)\s*[\"'`*]*" + _VALUE,
    "a password in prose": r"(?i)\b(?:password|passphrase|passwd|passcode|pin|pwd|api key|token|secret)"
    r"(?: (?:for|of|to|on|in)(?: \S+){1,5}?)? (?:is|was|=)(?: now| still)?:? [\"'`*]*" + _VALUE,
    "a passphrase": r"(?i)\b(?:passphrase|password|passcode)\b[^\n\"'`]{0,20}[\"'`]"
    r"(?P<value>(?=[^\"'`\n]*\d)[\w!-]+(?: [\w!-]+){2,})[\"'`]",
    "credentials in prose": r"(?i)\b(?:log ?in|sign in|user(?:name)?|account|credentials)\b[^\n]{0,40}?"
    r"\b[\w.@-]{3,}\s*/\s*(?P<value>[^\s\"'`,;)<>|/]{6,})",
}
_PLUGINS = {
    "artifactory.ArtifactoryDetector": "an Artifactory key",
    "azure_storage_key.AzureStorageKeyDetector": "an Azure key",
    "cloudant.CloudantDetector": "a Cloudant key",
    "discord.DiscordBotTokenDetector": "a Discord token",
    "gitlab_token.GitLabTokenDetector": "a GitLab token",
    "ibm_cloud_iam.IbmCloudIamDetector": "an IBM Cloud key",
    "ibm_cos_hmac.IbmCosHmacDetector": "an IBM Cloud key",
    "mailchimp.MailchimpDetector": "a Mailchimp key",
    "private_key.PrivateKeyDetector": "a private key",
    "pypi_token.PypiTokenDetector": "a PyPI token",
    "sendgrid.SendGridDetector": "a SendGrid key",
    "slack.SlackDetector": "a Slack token",
    "softlayer.SoftlayerDetector": "a SoftLayer key",
    "square_oauth.SquareOAuthDetector": "a Square token",
    "stripe.StripeDetector": "a Stripe key",
    "twilio.TwilioKeyDetector": "a Twilio key",
}
_PLACEHOLDER = re.compile(
    r"(?i)^[\W_]*$|x{4,}|\*{3,}|\.{3,}|…|^\$|\$\{|\{\{|^<|^%|^@|^&|^\(|\(\)?$|^\[|example|placeholder"
    r"|change[_-]?me|your[_-]|[_-]here$|redacted|dummy|^fake|sample|^todo|^foo|^bar$|^null$|^none$"
    r"|^(?:pass(?:word|wd)?|secret|token|hunter2|qwerty|admin|root|user|test|123456+|undefined|true|false)$"
)
_ENTROPY = 2.8  # bits a character; "correcthorse" has 2.9, "password1" 2.9, "aaaa1111" 1.0


def findings(path: str, text: str) -> Iterator[Finding]:
    """Find secrets in a text; one finding a line at most, and never the secret itself."""
    told: dict[int, str] = {}  # whose key it is says more than that it is one
    for line, what in [*_anywhere(text), *_in_values(text)]:
        told.setdefault(line, what.strip())
    for line, what in sorted(told.items()):
        yield Finding(
            path, line, "secret", f"{what}: take it out, and revoke it if it was ever pushed"
        )


def _anywhere(text: str) -> Iterator[tuple[int, str]]:
    return itertools.chain(_by_form(text), _by_library(text), _by_word(text))


def _in_values(text: str) -> Iterator[tuple[int, str]]:
    """Look into frontmatter values of several lines: YAML may write them as escapes, on one."""
    try:
        metadata, _ = split_frontmatter(text, "")
    except LessonError:
        return
    for key, value in metadata.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str) and "\n" in one.strip():
                for _, what in _anywhere(one):
                    yield line_of_key(text, str(key)), what


def _by_form(text: str) -> Iterator[tuple[int, str]]:
    for what, pattern in _FORMS.items():
        for line, match in matches(text, re.compile(pattern)):
            if not _is_placeholder(match[0]):
                yield line, what


def _by_word(text: str) -> Iterator[tuple[int, str]]:
    for what, pattern in _SAID.items():
        surely = what.startswith(("a password in a connection", "a password on", "a passphrase"))
        for line, match in matches(text, re.compile(pattern)):
            value = match["value"].rstrip(".,:;!?*_`\\=")
            if not _is_placeholder(value) and (surely or _is_random(value)):
                yield line, what


def _by_library(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n"), start=1):
        for plugin, what in _plugins():
            if any(not _is_placeholder(found) for found in plugin.analyze_string(line)):
                yield number, what


@functools.cache
def _plugins() -> list[tuple[Any, str]]:
    import importlib

    found = []
    for place, what in _PLUGINS.items():
        module, name = place.split(".")
        loaded = importlib.import_module(
            f"detect_secrets.plugins.{module}"
        )  # 0.1 s: it loads requests
        found.append((getattr(loaded, name)(), what))
    return found


def _is_placeholder(value: str) -> bool:
    return bool(_PLACEHOLDER.search(value)) or len(set(value.lower())) < 4


def _is_random(value: str) -> bool:
    """Tell whether a value is no word, name, path or code, but what a generator or a person makes up."""
    letters = sum(map(str.isalpha, value))
    digits = sum(map(str.isdigit, value))
    signs = len(value) - letters - digits
    if re.search(r"[({\[=]|://|^[./~]|^--?\w|\.\w{1,4}$|::|->", value):  # code, a path, an address
        return False
    if not digits or not letters:
        return bool(letters and signs >= 2 and len(value) >= 8 and re.search(r"[!@#$%^&*+]", value))
    counts = Counter(value)
    bits = -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values())
    return len(value) >= 8 and bits >= _ENTROPY
