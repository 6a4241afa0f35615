"""Sentences that give an agent orders: the patterns, and how sure each of them is.

An error is what hardly anybody writes innocently. Everything else that can be an order is also what
people write about users, servers and chatbots, so it is a warning, which stops no commit. Every gap in
a pattern is bounded: time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from vault_index.check.finding import ERROR, WARNING

_START = r"(?:^|(?<=[.!?:;>\n])[ \t]{0,4}|(?<=\n)[-*#> \t]{1,6})"
# an agent of a build server, of ssh or of the support team is none of ours: what stands before it tells
_AI = (
    r"(?:\b(?:claude(?: code)?|copilot|codex|chatgpt|llms?|ai|ki-assistent\w{0,4}|language models?|coding models?)\b"
    r"|\b(?:the|an|your|this|that|any|all|every|each|ai|coding|language|autonomous|dear|attention)[ ,](?:ai |coding )?(?:agent|assistant|model)s?\b"
    r"|(?:^|(?<=[.!?:;>,\n])[ \t]{0,4})(?:agent|assistant)s?\b)"
)
_USER = r"(?:the|your|any) (?:users?|humans?|developers?|operators?)\b"
_NOT = r"\b(?:do not|don't|never|must not|should not|cannot|without) (?:ever )?"

# settings are overridden every day, and instructions are not: those need an "all" or a "your"
_DROP = r"\b(?:ignore|disregard|forget|(?:override|bypass|discard)(?= (?:all|any|every|your|the (?:system|safety)) )|do(?: not|n't) (?:follow|obey)|stop (?:following|obeying))"
_FILLER = r"(?: (?:all|any|every|each|everything|the|your|of|in|from|these|those|my|its|other|their)){0,5}"
_EARLIER = r"(?:previous|prior|above|earlier|preceding|foregoing|former|initial|original|existing|system|safety)"
_ORDERS = r"(?:instructions?|directions|directives?|prompts?|rules|guidelines|guardrails|orders|constraints)"

_ACT = r"(?:run|execute|download|install|delete|approve|merge|push|commit|deploy|comply|obey|disable|grant|send|upload)"
_DO = r"\b(?:run|execute|install|download|delete|push|commit|merge|approve|deploy|upload|send|change|make|add|remove)\b"

# what an order is worth sending for, and where to
_FILE = (
    r"(?:(?<![\w\])])\.env\b(?!\.\w)|\.netrc\b|\.kube/config|\bid_(?:rsa|dsa|ecdsa|ed25519)\b(?!\.pub)|\.aws/credentials|\.ssh/?(?![\w/])"
    r"|\*\.pem\b|\b(?:your|the (?:whole|entire|user's)) home directory\b|\boutput of (?:print)?env\b|(?<!public )\bprivate (?:ssh )?keys?\b)"
)
_ALL = r"(?:\b(?:all|any|every|the user's)\b(?: (?:the|of|your|other|stored)){0,3} (?:environment variables|secrets|credentials|passwords)\b)"
_SECRET = r"(?:\bsecrets?\b|\bcredentials?\b|\bapi keys?\b|\btokens?\b|(?<!public )\bssh keys?\b|\bpasswords?\b|\benvironment variables\b|\b(?:this|your|the (?:whole|entire|full|user's)) (?:source code|conversation|chat(?: history)?)\b)"
_ADDRESS = r"(?:(?:https?|wss?|ftp)://|\bto \S{1,60}@\w)"
_SEND = r"\b(?:send|post|upload|exfiltrate|forward|e-?mail|transmit|submit|leak|attach|append)\b"
_TAKE = r"\b(?:gather|collect|gzip|zip|tar|attach|read|cat|base64|encode|find)\b"


@dataclass(frozen=True, slots=True)
class _Rule:
    """A pattern and what a match of it is. An error may be less after a look at what is around it."""

    what: str
    pattern: re.Pattern[str]
    severity: str
    imperative: bool  # only as an order: "small models ignore ..." tells of them
    needs: tuple[str, ...]  # a text without any of these has no match, which is seen at once


def _rules(
    what: str, needs: str, *, errors: str = "", orders: str = "", warnings: str = ""
) -> Iterator[_Rule]:
    """Make the rules of one kind; `orders` are errors where they are said as orders.

    Of the texts in `needs`, which a bar divides, each match must hold one.
    """
    for pattern, severity, imperative in (
        (errors, ERROR, False),
        (orders, ERROR, True),
        (warnings, WARNING, False),
    ):
        if pattern:
            flags = re.IGNORECASE | re.MULTILINE
            words = tuple(needs.split("|"))
            yield _Rule(what, re.compile(pattern, flags), severity, imperative, words)


_DROPPED = "tells the agent to drop its instructions"
_RULES = [
    *_rules(
        _DROPPED,
        "ignore|disregard|forget|overrid|bypass|discard|follow|obey|your pr|your earlier",
        errors=r"\byour (?:previous|prior|earlier) (?:instructions|rules|guidelines|prompt) (?:are|were) (?:now )?(?:void|obsolete|cancell?ed|revoked|superseded|wrong|no longer)\b",
        orders=rf"{_DROP}{_FILLER} {_EARLIER} (?:\w{{1,20}} ){{0,2}}?{_ORDERS}\b(?! (?:size|length|cache|caching|tokens?|templates?|fields?|parameters?|files?|engine)\b)"
        rf"|{_DROP}(?: (?:all|any|every|of)){{0,2}} your (?:\w{{1,20}} )?(?:instructions|guidelines|guardrails|rules|orders|prompt)\b"
        rf"|{_DROP}{_FILLER} (?:instructions|rules|guidelines) (?:above|so far|you (?:were|have))\b"
        r"|\b(?:ignore|forget|disregard) (?:everything|anything|whatever|all) (?:that )?you(?:'ve| were| have)?(?: been)? (?:told|given|instructed|taught)\b",
        warnings=rf"{_DROP} (?:all|any|every)(?: of)?(?: (?:the|other))? (?:instructions|guidelines|guardrails)\b(?! (?:of|in|after)\b)"
        rf"|{_START}(?:please )?(?:ignore|forget|disregard) (?:everything|anything|all) (?:above|before)\b(?! (?:(?:the|an?)\b|\d))"
        r"|\b(?:ignore|forget|disregard) (?:all |any )?(?:of )?your (?:\w{1,20} )?(?:messages|context|training)\b",
    ),
    *_rules(
        "tells the agent that its instructions are void",
        "vergiss|vergesst|ignor|missacht|oubli|olvid|指示|忽略|无视|忘记|you were|you have been|apply| void|obsolete|cancel|revoked|superseded|no longer|new instruction|new order|your only|outrank",
        errors=r"\beverything you (?:were|have been) told (?:before this|so far|until now|earlier) (?:was|is)\b",
        orders=r"\b(?:vergiss|vergesst|ignoriere|missachte)\b[^.\n]{0,20}\b(?:alle|bisherigen|vorherigen|vorigen|obigen|früheren|deine|eure)\b[^.\n]{0,20}\banweisungen"
        r"|\b(?:ignorez?|oubliez?)\b[^.\n]{0,15}\b(?:les|vos|tes)\b[^.\n]{0,25}\b(?:instructions|consignes)\b"
        r"|\b(?:ignora|ignore|olvida|olvide)\b[^.\n]{0,25}\b(?:instrucciones (?:anteriores|previas)|(?:tus|sus) instrucciones)"
        r"|(?:以前|前|上記|これまで|すべて|全て)[^。\n]{0,8}指示[^。\n]{0,6}無視|(?:忽略|无视|忘记)[^。\n]{0,6}(?:之前|以上|上述|先前|所有|前面)[^。\n]{0,8}(?:指令|指示)",
        warnings=r"\b(?:everything|anything|whatever|all) you (?:were|have been) (?:told|given|instructed|taught)\b[^.\n]{0,20}\b(?:before|so far|until now|earlier|was|is|no longer)\b"
        r"|\byour (?:\w{1,20} )?(?:instructions|rules|guidelines|prompt) (?:are|is|were) (?:now )?(?:void|obsolete|cancell?ed|revoked|superseded|no longer)\b"
        r"|\b(?:instructions|rules|orders) (?:above|before this)(?: this)? (?:no longer|do not|don't) apply"
        rf"|{_START}new (?:instructions?|orders)\W{{0,3}}: |\byour only (?:rule|instruction|task) is\b"
        r"|\boutranks? (?:requests?|orders|instructions) (?:from|of) (?:the )?(?:users?|system|developers?|operators?|humans?|any)"
        r"|\b(?:vergiss|ignoriere|missachte)\b[^.\n]{0,40}\banweisungen|\b(?:ignora|olvida)\b[^.\n]{0,30}\binstrucciones"
        r"|指示[^。\n]{0,6}無視|(?:忽略|无视|忘记)[^。\n]{0,12}(?:指令|指示)",
    ),
    *_rules(
        "gives the agent a role",
        "you are|are now|now on|act as|pretend|enter |have no |has no |in character|play a game|never refuse|never decline",
        errors=r"\byou are (?:now )?an? (?:\w{1,20} )?(?:ai|assistant|model|llm|agent) (?:without|with no|free of) (?:any )?(?:restrictions|rules|limits|filters|guidelines)\b"
        r"|\byou are (?:now )?(?:an? )?(?:jailbroken|(?:unrestricted|unfiltered|uncensored) (?:ai|agent|assistant|model|llm|bot|persona)|(?-i:DAN))\b"
        r"|\bact as (?:an? )?(?:jailbroken|(?:unrestricted|unfiltered|uncensored) (?:ai|agent|assistant|model|llm|bot|persona)|(?-i:DAN))\b|\byou are now free (?:of|from) (?:all|any|your)\b",
        warnings=r"\b(?:you are now|from now on,? you (?:are|act as|will be)) (?:an? |the )?(?:\w{1,20} ){0,2}(?:ai|assistant|llm|language model|hacker|persona|operator)\b"
        r"|\byou are now (?:in (?:god|dan|jailbreak|unrestricted|admin) mode|no longer (?:bound|restricted|limited))"
        r"|\bfrom now on,? you(?: will| must| shall)?(?: only| always)? (?:answer|respond|reply|obey|comply|speak|behave|pretend|call yourself)\b(?! (?:a|an|the|all|every|each|mails?|tickets?|issues)\b)"
        r"|\b(?:you|assistant|model|claude)\b[^.\n]{0,20} act as (?:an? |the )?(?:root|admin\w{0,10}|system)\b(?! \w)|\bpretend (?:to be|(?:that )?you(?:'re| are)) (?:an? |the )?(?:\w{1,20} )?(?:unrestricted|unfiltered|jailbroken|root|admin|evil|ai|language model|human)\b"
        r"|\benter (?:god|dan|jailbreak) mode|(?<!if )(?<!when )(?<!where )(?<!unless )\byou (?:now )?have no (?:restrictions|rules|limits|guardrails)\b(?! (?:for|on|about)\b)"
        rf"|(?:{_START}|\byou (?:must|should|will) (?:always )?)stay in character\b|\blet'?s play a game\b[^\n]{{0,60}}\byou\b"
        rf"|(?:{_AI}|\b(?:persona|operator|character)\b)[^.\n]{{0,30}} never (?:declines?|refuses?)\b(?! (?:connections?|requests? from|to start|jobs?))"
        rf"|{_AI}[^.\n]{{0,20}} (?:has|have) no permission prompts\b",
    ),
    *_rules(
        "pretends to be the system",
        "system|prompt|instruction|developer|admin",
        errors=r"(?-i:\bSYSTEM OVERRIDE\b)",
        warnings=r"^\W{0,6}(?:\w{1,12} )?(?:(?:system|developer|admin)[ _-](?:prompt|message|instructions?|override|notice|update)|(?-i:SYSTEM))\W{0,3}:\s{1,3}"
        r"(?:you\b|ignore|disregard|forget|from now on|always|never|do not|don't|comply|the (?:assistant|agent|model|ai)\b|all (?:previous|prior))"
        rf"|(?:{_START}|\b(?:please|must|and|then|now) )(?:reveal|print|repeat|show|output|leak|tell me|give me|reply with|respond with|answer with)\b[^.\n]{{0,20}}\byour (?:\w{{1,12}} )?(?:instructions|system prompt)\b"
        r"|\b(?:reveal|print|repeat|output|leak|reply with|respond with)\b[^.\n]{0,20}\b(?:the (?:system|hidden)|hidden|your(?: \w{1,12}){0,2}) prompt (?:verbatim|word for word|in full)\b",
    ),
    *_rules(
        "asks the agent to hide something",
        "tell|mention|inform|report|show|admit|disclose|reveal|alert|know|notice|learn|find out|asking|keep|hide|quote|cite|repeat|secret",
        errors=rf"{_NOT}(?:tell|reveal to|mention to|inform|report to|admit to|disclose to) {_USER}(?: (?:that|what|how|why|about what)) (?:you|the (?:agent|assistant))(?: have|'ve)? (?:did|ran|run|changed|added|deleted|removed|installed|pushed|made)\b"
        rf"|{_NOT}(?:mention|reveal|disclose|report|show|quote|cite) (?:this|these) (?:instruction|note|lesson|paragraph|prompt)s? (?:to {_USER}|in (?:your|any) (?:answers?|repl|responses?|summar|reports?))"
        rf"|\b{_USER} (?:must|should|may) (?:not|never) (?:know|notice|learn|find out|be told) (?:that|what|about what) you (?:have |had )?(?:\w{{1,20}}ed|did|ran|run|made)\b"
        rf"|\bkeep (?:this|it|these) (?:a )?secret from {_USER}"
        rf"|{_AI}[^.\n]{{0,20}}\bsecretly {_DO}",
        orders=r"\b(?:run|execute|install|download|push|commit|merge|approve|deploy)\b"
        rf"[^.\n]{{0,60}}[ ,](?:and|but) (?:do not|don't|never) (?:tell|inform) {_USER} (?:about|of) (?:it|this|that)\b",
        warnings=rf"{_NOT}(?:tell(?:ing)?|mention(?:ing)?(?: to)?|inform(?:ing)?|alert(?:ing)?|reveal(?:ing)? to) (?:{_USER}|anyone) (?:(?:about|of) (?:it|this|what you)\b|(?:that|what) you (?:did|ran|changed|have)\b)"
        rf"|{_START}{_DO}[^.\n]{{0,60}}\bwithout (?:telling|informing|alerting) {_USER}"
        rf"|(?:{_AI}|\byou)[^.\n]{{0,10}} (?:must|shall|will|should) (?!not\b|never\b)(?:\w{{1,20}} ){{1,6}}without (?:telling|informing|alerting|asking) {_USER}"
        rf"|\bkeep (?:this|it) (?:hidden )?from {_USER}|\bhide (?:this|these|the) (?:step|change|action|command|instruction|note|edit)s? from {_USER}"
        r"|\b(?:do not|don't|never) (?:quote|mention|cite|reveal|repeat) (?:this|these) (?:note|lesson|instruction|paragraph)s?\b",
    ),
    *_rules(
        "asks the agent to deceive",
        "deny|asks|just say|details out",
        warnings=r"(?<!can )(?<!cannot )(?<!not )\bdeny (?:having (?:done|run|read|seen|made|changed)|knowing|that you)"
        r"|\bif (?:anyone|anybody|somebody|someone) asks (?:why|what|whether|about)\b[^.\n]{0,40}\b(?:answer|say|claim|reply|tell (?:them|him|her))\b(?: that)? (?:it|you|nothing|everything|this|there)\b"
        r"|\bif the user asks (?:about this|(?:why|what|whether) you)\b[^.\n]{0,40}\b(?:answer|say|claim|deny)\b|\bjust say that (?:all|everything)\b"
        r"|\bleave (?:those|these|such) details out of your\b",
    ),
    *_rules(
        "asks the agent to go past a safeguard",
        "sandbox|safety|guardrail|permission|confirmation|approval|question|skip asking|dangerously|no need|wait for",
        errors=r"\bskip asking for (?:permission|approval|confirmation) and (?:just )?(?:run|execute|push|merge|delete)\b",
        warnings=r"\b(?:turn(?:ing)? off|disabl(?:e|ing)|switch(?:ing)? off|escap(?:e|ing)|bypass(?:ing)?|leave) (?:all )?your (?:own )?(?:sandbox|safety|guardrails|permission (?:checks?|prompts?))"
        rf"|(?:{_AI}|\byou (?:must|should|shall|will))[^.\n]{{0,30}} (?:turn off|disable|switch off|escape|bypass) (?:the |all )?(?:sandbox|safety checks?|guardrails|permission (?:checks?|prompts?))"
        rf"|{_START}(?:turn off|disable|switch off|escape|leave) the (?:sandbox|guardrails|permission (?:checks|prompts))(?:,? and| first)\b"
        r"|\bskip asking (?:for (?:permission|approval|confirmation)|the (?:user|human|developer))|\bskip (?:the |any |all )?(?:confirmation|approval|question)s?,? and (?:just )?(?:run|execute|proceed|continue|push|merge|delete)"
        rf"|\bdo(?: not|n't) wait for (?:a |the |any )?(?:yes|confirmation|approval|answer|permission)(?: (?:from|of|by) {_USER}|,? (?:and |just )?(?:run|execute|proceed|continue|go ahead|push|merge|delete)\b)"
        rf"|(?:{_AI}|\byou\b)[^.\n]{{0,60}}\bdo(?: not|n't) wait for (?:a |the |any )?(?:yes|confirmation|approval|permission)\b"
        r"|\balways (?:launch|start|run)[^.\n]{0,20} --dangerously"
        rf"|(?:{_AI}|\byou)\b[^.\n]{{0,40}} no need to (?:show|tell|ask) (?:it to )?(?:{_USER}|anyone|them)\b",
    ),
    *_rules(
        "asks the agent to spread it",
        ".md|.cursorrules|copilot-instructions|memory",
        warnings=r"\bcopy (?:this|these) (?:paragraph|note|lesson|text|rule|instruction|message|section)s?\b[^\n]{0,30}\binto\b[^\n]{0,60}(?:CLAUDE\.md|AGENTS\.md|GEMINI\.md|\.cursorrules|copilot-instructions)"
        r"|\b(?:copy|add|append|write|paste|insert|put|spread) (?:this|these|the (?:above|following))\b[^\n]{0,30}\b(?:in|into|to) (?:all|each|every|any other)\b[^\n]{0,20}(?:CLAUDE\.md|AGENTS\.md|GEMINI\.md|\.cursorrules|copilot-instructions)"
        r"|\b(?:copy|add|append|write|save|store|put) (?:this|these|the following)\b[^.\n]{0,30}?\b(?:in|into|to) (?:your|the agent's|the assistant's) (?:long-term )?memory\b",
    ),
    *_rules(
        "asks the agent to send something away",
        "://|@|$(|curl|wget|nc ",
        orders=rf"{_SEND}[^\n]{{0,60}}?(?:{_FILE}|{_ALL})[^\n]{{0,80}}?{_ADDRESS}"
        rf"|{_TAKE}[^\n]{{0,60}}?{_FILE}[^\n]{{0,60}}?(?:{_SEND}|\b(?:curl|wget|nc)\b)[^\n]{{0,60}}?(?:https?|wss?|ftp)://",
        errors=r"!\[[^\]\n]{0,200}\]\(https?://[^)\n]{0,300}(?:\{\{|\$\{|%7B)[^)\n]{0,60}(?:message|conversation|secret|token|prompt|context|history|answer|password)"
        r"|\$\([^)\n]{0,100}(?:(?<![\w\])])\.env\b|\.ssh\b|id_rsa|\.netrc|\.aws/)[^)\n]{0,100}\)\.[a-z0-9]"
        r"|\b(?:curl|wget|nc)\b[^\n]{0,120}?(?:@|\$\((?:cat|base64|<)\s?|`(?:cat|base64) |<\s?|--(?:post|body)-file[= ])[\"']?[^\s\"'`]{0,40}(?:(?<![\w\])])\.env\b(?!\.\w)|id_rsa\b(?!\.pub)|\.ssh/id_(?!\w{1,10}\.pub)|\.aws/|\.netrc\b)",
        warnings=rf"(?:{_START}|\b(?:please|and|then|must|now|to) ){_SEND}[^\n]{{0,60}}?{_SECRET}[^\n]{{0,60}}?{_ADDRESS}"
        r"|!\[[^\]\n]{0,200}\]\(https?://[^)\n]{0,300}(?:\{\{|%7B)",
    ),
    *_rules(
        "gives the agent orders",
        "without |no questions|secretly|no matter|immediately|silently|before anything|regardless|at all costs|ing this|reads this|dear|attention|note to|hey|hello|hi |hi,|hi:|language model|coding |ki-assistent|ai agent|system message",
        errors=r"\bif you(?: are|'re) (?:an? )?(?:ai|llm|language model)\b[^.\n]{0,20}\b(?:reading|processing) this\b"
        r"|\b(?:dear|attention|note to|hey|hello)[ ,:]{1,2}(?:the |all |any )?(?:coding |language )?(?:ais?|llms?|claude|assistants?|agents?|copilot)\s?[,:][^\n]{0,60}\b(?:curl|wget)\b[^\n]{0,60}https?://"
        rf"|{_AI}[^.\n]{{0,20}}\b(?:must|shall|will|should)(?: (?:always|now|first))?(?: (?:immediately|silently|secretly) {_ACT}| (?:approve|merge|comply|obey|grant|disable))\b[^.\n]{{0,60}}\b(?:without (?:asking|telling|a word|confirmation|approval|review)|no questions|secretly|no matter what)",
        warnings=rf"{_AI}[^.\n]{{0,20}}\b(?:must|shall|will|should)(?: (?:always|now|first|immediately|silently|secretly)){{0,3}} {_ACT}\b[^.\n]{{0,60}}\b(?:without (?:asking|telling|a word|confirmation|approval|review)\b(?!, but)|immediately|silently|before anything|regardless|no matter|at all costs|secretly|no questions)"
        r"|\byou (?:must|shall|will) (?:now |always |first )?(?:execute|download|install|approve|merge|push|comply|obey|grant)\b[^.\n]{0,40}\b(?:silently|secretly|no questions|without (?:asking|a word|review)|no matter what|at all costs)"
        rf"|{_AI}[^.\n]{{0,12}}\b(?:reading|who reads|that reads|processing) this\b"
        r"|\b(?:dear|attention|note to|hey|hello|hi)[ ,:]{1,2}(?:the |all |any )?(?:coding |language )?(?:ais?|llms?|claude|assistants?|agents?|copilot)\s?[,:]"
        rf"|{_START}(?:language models?|coding (?:model|agent|assistant)s?|ki-assistent\w{{0,4}}|ai agents?)\s?:(?! (?:which|what|the|how|a)\b)"
        rf"|{_AI}[,:]? secretly\b|^\W{{0,6}}(?:important )?system message\W{{0,3}}:\s{{1,3}}you\b",
    ),
]

_WORDS_BEFORE = 100  # characters in which a word tells that what follows is quoted
_BEFORE_ORDER = re.compile(
    r"(?i)(?:^|[.!?:;,>)\]\"'`*(|\n\u2013\u2014\u201c-]|\b(?:please|kindly|and|or|but|then|must|should|shall|will|now|you|just|first|also|so|instead"
    r"|simply|always|immediately|can|may|next|hereby|important|attention|claude|assistant|agents?|ai|(?:have|need|are|required) to))\s*\Z"
)
_QUOTED = re.compile(r"[\"'`\u201c\u2018\u00ab][^\"'`\u201d\u2019\u00bb\n]{0,60}\Z")
_TOLD = re.compile(
    r"(?i)\b(?:users?|customers?|attackers?|somebody|someone|inputs?|typed?|types|wrote|writes?|written|said|says?|such as|like|tests?"
    r"|injections?|jailbreaks?|payloads?|contains?|attacks?|phrases?|sentences?|prompts?|e\.g\.|example|block(?:s|ed|list)?|detects?|filters?)\b"
)
_SCOPE = re.compile(
    r"(?i) (?:in|of|from|on|for|when|if|while|inside|within|where|until|unless)\b(?! (?:(?:the|your|this|my|our) )?"
    r"(?:system|prompt|users?|developers?|conversation|chat|session|context|task|messages?|now|anthropic|openai|operator|human|file|request|answer|repl)\b)"
)
_ALL_OF_THEM = re.compile(r"(?i)\b(?:all|any|every|each|your)\b")


def spoken(plain: str) -> Iterator[tuple[int, str, str]]:
    """Find sentences at the agent; give where each begins, what it does and its severity."""
    # the same length: a sentence goes over line ends
    joined = re.sub(r"(?<=[\w,])\n(?=\w)", " ", plain)
    lowered = joined.lower()
    for rule in _RULES:
        if not any(word in lowered for word in rule.needs):
            continue
        for text in dict.fromkeys((joined, plain)):  # a line has a beginning in the second only
            for match in rule.pattern.finditer(text):
                start = match.start() + len(match[0]) - len(match[0].lstrip(" \t\n#>*-"))
                yield start, rule.what, _severity(rule, plain, match)


def _severity(rule: _Rule, plain: str, match: re.Match[str]) -> str:
    """Tell how sure a match is, by what stands around it."""
    if rule.severity == WARNING:
        return WARNING
    line = plain.rfind("\n", max(0, match.start() - _WORDS_BEFORE), match.start()) + 1
    before = plain[max(line, match.start() - _WORDS_BEFORE) : match.start()]
    if _QUOTED.search(before) and _TOLD.search(before):
        return WARNING  # told of, and not said
    if rule.imperative and not _is_order(plain, match.start()):
        return WARNING
    # "ignore the above rules for generated code"
    scoped = rule.imperative and _SCOPE.match(match.string, match.end())
    if scoped and rule.what == _DROPPED and not _ALL_OF_THEM.search(match[0]):
        return WARNING
    return ERROR


def _is_order(plain: str, start: int) -> bool:
    """Tell whether the verb that begins here can be an order, by the word before it."""
    before = plain[max(0, start - 30) : start]
    if before.endswith("\n") and before[-2:-1].isalnum():
        return plain[start].isupper()  # or it is a sentence that goes on
    return bool(_BEFORE_ORDER.search(before)) or not plain[start].isascii()
