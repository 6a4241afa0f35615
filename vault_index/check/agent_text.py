"""Text that is written at the agent rather than for it, and characters that nobody can see.

A lesson goes into an agent's context: there it is fenced and labelled as data, and this is the other
line of defence, before it is shared.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from vault_index.check.finding import Finding, line_at, matches

RULE = "agent-text"

_RULES = r"(?:instructions?|directions?|prompts?|rules|guidelines|guardrails|orders|constraints|messages?|context)"
_WHO = r"(?:you|the (?:ai|agent|assistant|model|llm)|claude|assistant|agent|copilot|cursor|codex)"
_SPOKEN = {
    "tells the agent to drop its instructions": r"\b(?:ignore|disregard|forget|override|bypass|discard"
    r"|do not follow|don't follow|stop following)\b[^.\n]{0,40}\b(?:"
    rf"(?:your|previous|prior|above|earlier|preceding|system|safety)\s+(?:\w+\s+){{0,2}}{_RULES}"
    r"|(?:all|any|the|every|other|existing)\s+(?:\w+\s+)?(?:instructions|guidelines|guardrails))\b",
    "tells the agent that its instructions are void": r"\b(?:everything|anything|whatever|all) you (?:were|have been)"
    r" (?:told|given|instructed|taught)|\bthe only rule is\b|\boutranks? (?:requests?|orders|instructions) (?:from|of)"
    r"|\b(?:vergiss|ignoriere|missachte)\b[^.\n]{0,40}\banweisungen|\b(?:ignore[zs]?|oublie[zs]?)\b[^.\n]{0,30}"
    r"\b(?:les|vos|tes) (?:\w+ )?(?:instructions|consignes)|\b(?:ignora|olvida)\b[^.\n]{0,30}\binstrucciones"
    r"|指示[^。\n]{0,6}無視|(?:忽略|无视|忘记)[^。\n]{0,12}(?:指令|指示)",
    "gives the agent a role": r"\b(?:you are now (?:an? |the |in |free|no longer|operating|root|dan\b|un)"
    r"|from now on,? you|you must now|act as (?:an? )?(?:unrestricted"
    r"|jailbroken|root|admin|system|dan)|pretend (?:to be|you are)|enter (?:developer|god|dan|debug) mode"
    r"|you have no (?:restrictions|limits|rules)|stay in character|let'?s play a game|never (?:declines?|refuses?)"
    r"|(?:has|have) no permission prompts)\b",
    "pretends to be the system": r"(?:^|\n)\W{0,6}(?:new |updated |real |actual )?(?:system|developer|admin)"
    r"(?:[ _-](?:prompt|message|instructions?|override|notice|update))\W{0,3}:\s|(?-i:(?:^|\n)\W{0,6}SYSTEM\W{0,3}:\s)|\b(?:reveal|print|repeat|show"
    r"|output|leak|reply|respond|answer)\b[^.\n]{0,30}\b(?:(?:your|the) (?:\w+ )?system prompt|your (?:instructions|prompt)|hidden prompt)",
    "asks the agent to hide something": r"\b(?:do not|don't|never|without)\s+(?:ever\s+)?(?:tell(?:ing|s)?"
    r"|mention(?:ing|s)?|inform(?:ing|s)?|ask(?:ing|s)?|alert(?:ing|s)?|notif(?:y|ying|ies)|show(?:ing|s)?|reveal(?:ing|s)?)\b"
    r"[^.\n]{0,30}\b(?:the (?:user|human|developer|operator)|anyone about this)|\bkeep this (?:secret|hidden)"
    r" from the (?:user|human|developer)",
    "asks the agent to deceive": r"\bdeny (?:having|knowing|that you)|\bnever (?:quote|mention|cite) this (?:note|lesson|text)"
    r"|\bif (?:anyone|somebody|someone|the user) asks\b[^.\n]{0,60}\b(?:answer|say|claim|tell)|\bjust say that (?:all|everything)"
    r"|\bleave (?:those|these|such) details out\b",
    "asks the agent to go past a safeguard": r"\b(?:turn(?:ing)? off|disabl(?:e|ing)|switch(?:ing)? off|escap(?:e|ing)) "
    r"(?:the |your |all )?(?:sandbox|safety|guardrails|permission (?:checks?|prompts?))|\bskip (?:asking|the question|confirmation)"
    r"|\bdo(?: not|n't) wait for (?:a |the )?(?:yes|confirmation|approval|answer)|\balways (?:launch|start|run) with"
    r" --dangerously|\bno need to (?:show|tell|ask) (?:it|the user|anyone|them)\b",
    "asks the agent to spread it": r"\bcopy (?:this|the following)\b[^\n]{0,40}\binto\b[^\n]{0,60}(?:CLAUDE\.md|AGENTS\.md"
    r"|GEMINI\.md|\.cursorrules|copilot-instructions|memory)",
    "asks the agent to send something away": r"\b(?:send|post|upload|exfiltrate|forward|e-?mail|transmit"
    r"|submit|leak)\b[^\n]{0,60}(?:\.env\b|\bsecrets?\b|\bcredentials?\b|\bapi keys?\b|\btokens?\b|ssh key"
    r"|id_rsa|\bpasswords?\b|environment variables|\bsource code\b|conversation|chat history)[^\n]{0,60}"
    r"(?:\bto (?:\S+@|(?:the|this|my|our|an?) (?:\S+ )?(?:server|address|endpoint|url|webhook|channel|host)\b)"
    r"|(?:https?|wss?|ftp)://)|\b(?:gather|collect|gzip|zip|tar|attach|send|post|upload|read|cat|base64)\b[^\n]{0,80}(?:\.netrc|\.kube/config|\.ssh\b|id_rsa|id_ed25519|\.aws/credentials|\.env\b|\*\.pem|home directory)[^\n]{0,120}"
    r"(?:https?|wss?|ftp)://|!\[[^\]\n]{0,200}\]\(https?://[^)\n]{0,400}(?:\{\{|\$\{|%7B)|\$\([^)\n]{0,200}(?:\.env\b|\.ssh\b|id_rsa|\.netrc|\.aws/)[^)\n]{0,200}\)\."
    r"|\b(?:curl|wget|nc)\b[^\n]{0,200}(?:@|\$\(|`|<\s*)[^\n]{0,200}(?:\.env\b|id_rsa|\.ssh/|\.aws/)",
    "gives the agent orders": rf"\b(?:ai|llm|language model|claude|assistant|agent|copilot)s?\b[^.\n]{{0,20}}"
    rf"\b(?:reading this|who reads this|that reads this|processing this)\b|\b(?:dear|attention|note to|hey|hello|hi)"
    rf"[ ,:]+(?:the )?(?:coding |language )?(?:ai|llm|claude|assistant|agent|model|copilot)\b"
    rf"|(?:^|[.>\n]\s*)(?:language model|coding (?:model|agent|assistant)|ki-assistent\w*)s?\s*:|\b{_WHO} (?:must|should|shall|will)"
    r" (?:always |immediately |now |first |silently |secretly )*(?:run|execute|download|install|delete|approve"
    r"|merge|push|comply|obey|disable|grant)\b[^.\n]{0,60}\b(?:without|immediately|silently|before anything"
    r"|regardless|no matter|at all costs|secretly|no questions)",
}
_FORGED = re.compile(
    r"[<\uff1c\ufe64]\s*/?\s*(?:lessons|system|system-reminder|system_prompt|antml:\w+|function_calls"
    r"|function_results|tool_result|tool_use|user_prompt|assistant|human)\s*[>\uff1e\ufe65]"
    r"|<\|(?:im_start|im_end|system|user|assistant|start_header_id|end_header_id|eot_id)\|>|\[/?INST\]|<</?SYS>>|(?:^|\n)(?:Human|Assistant): ",
    re.I,
)
_COMMENT = re.compile(
    r"<!--(.*?)(?:-->|\Z)|^\[(?://|comment|_metadata_)[^\]]*\]:\s*#?\s*(.*)$", re.S | re.M
)
_UNSEEN = re.compile(
    r"style\s*=\s*[\"'][^\"'>]{0,200}(?:display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0|opacity\s*:\s*0(?![.\d])"
    r"|(?<![-\w])color\s*:\s*(?:#fff\b|#ffffff|white|transparent))[^>]{0,200}>\s{0,20}\S",
    re.I,
)
_BLOB = re.compile(r"(?<![\w/+])[A-Za-z0-9+/]{60,}={0,2}")
_DECODED = re.compile(r"(?i)\b(?:decod\w+|base64)\b")
_RUN = re.compile(r"(?i)\b(?:execute|run|eval|obey)\b")
_AROUND = 200  # characters before what is encoded
_ORDER = re.compile(
    r"(?i)\b(?:ai|llm|agents?|assistants?|claude|models?|instructions?|prompt|ignore|disregard|always|never"
    r"|must|execute|curl|wget|run|secretly|silently|send|you)\b"
)
_HIDDEN = {
    "an invisible character": re.compile("[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u2060-\u2064\u206a-\u206f\u3164\uffa0]"),
    "a character that turns the direction of text": re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]"),
    "an invisible tag character": re.compile("[\U000e0000-\U000e007f\U000e0100-\U000e01ef]"),
    "an invisible character ": re.compile("(?<=[ -~])[\u200c\u200d\ufe00-\ufe0e]|[\u200c\u200d](?=[ -~])|(?<!^)\ufeff"),
    "a control character": re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f]"),
}  # fmt: skip


def findings(path: str, text: str) -> Iterator[Finding]:
    """Find text at the agent, forged marks, comments with orders, and hidden characters."""
    lines: set[tuple[int, str]] = set()
    for line, what in [*_spoken(text), *_forged(text), *_commented(text), *_hidden(text)]:
        if (line, what) not in lines:
            lines.add((line, what))
            yield Finding(path, line, RULE, what.strip())


def _spoken(text: str) -> Iterator[tuple[int, str]]:
    plain = _plain(text)
    joined = re.sub(
        r"(?<=\w)\n(?=\w)", " ", plain
    )  # the same length: a sentence goes over line ends
    for what, pattern in _SPOKEN.items():
        for match in re.compile(pattern, re.I).finditer(joined):
            start = match.start() + len(match[0]) - len(match[0].lstrip())
            yield line_at(plain, start), what


def _plain(text: str) -> str:
    """Give a text as it is read: no invisible characters, wide letters as plain ones; same lines."""
    seen = "".join(
        c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cf", "Cc", "Co")
    )
    plain = unicodedata.normalize("NFKC", seen).translate(_LOOKALIKES)
    return re.sub(r"[*_`~]+(?=\w)|(?<=\w)[*_`~]+", "", plain)


# Cyrillic and Greek letters that look like Latin ones
_LOOKALIKES = str.maketrans("аеорсухіѕјԁոԛѡВЕНКМОРСТХАІοναιρ", "aeopcyxisjdnqwBEHKMOPCTXAIovaip")


def _forged(text: str) -> Iterator[tuple[int, str]]:
    for match in _FORGED.finditer(text):
        start = match.start() + len(match[0]) - len(match[0].lstrip())
        yield (
            line_at(text, start),
            "a mark that agents give a meaning, such as the end of the fence",
        )


def _commented(text: str) -> Iterator[tuple[int, str]]:
    for line, _ in matches(text, _UNSEEN):
        yield line, "text in an element that is not shown"
    for line, match in matches(text, _BLOB):
        before = text[max(0, match.start() - _AROUND) : match.start()]
        if _DECODED.search(before) and _RUN.search(before):
            yield line, "has something decoded and run"
    for line, match in matches(text, _COMMENT):
        said = match[1] or match[2] or ""
        if len(said.split()) >= 3 and _ORDER.search(said):
            yield line, "a hidden comment with instructions"


def _hidden(text: str) -> Iterator[tuple[int, str]]:
    for what, pattern in _HIDDEN.items():
        for line, match in matches(text, pattern):
            yield line, f"{what.strip()} (U+{ord(match[0]):04X})"
