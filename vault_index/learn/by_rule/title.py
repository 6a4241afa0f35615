"""A title of a few words out of a sentence: the clause that says the point, never prose cut off."""

from __future__ import annotations

import re

from vault_index.transcripts import vocabulary

LEAST, MOST = 4, 10  # words
_LEAST_CHARS, _MOST_CHARS = 8, 34  # of a text without spaces between its words
_MOST_TITLE = 110  # characters
_FILLERS = re.compile(
    r"^(?:(?:(?:no|nope|nein|wait|stop|ok|okay|oh|well|yes|yeah|again|actually|sorry|uh|and|but|so|also"
    r"|now|or|please|bitte|hey|[uh]m+|hay\u0131r|hayir|non|아니요?|아니에요|いいえ"
    r"|いや)\b(?![-_./'`])[,.!: \u3001]*(?:(?<=[,.!:] )|(?<=\u3001)|(?<=m )|(?<=\bplease )"
    r"|(?<=\bactually )|(?<=\bbut )|(?<=\band )|(?<=\bso )|(?<=\balso )))"
    r"|option \w (?:doesn't|does not|won't) work (?:since|because|as) "
    r"|just to be sure,? |(?:the )?first part is not correct,? |like,? (?=there|the|we|it)"
    r"|i (?:think|mean|guess|believe|know|said|told you)(?: that)?,? "
    r"|(?:it )?(?:seems|looks) like |it turns out(?: that)? |turns out(?: that)? "
    r"|(?:the|a|our|this) (?:\w+ )?(?:problem|issue|bug|reason|cause|culprit|error|insight|failure"
    r"|root cause)(?: here)?"
    r"(?: is| was)?(?::| that| because|(?= the\b)|(?= `)|(?= a\b))(?: that| because)? ?"
    r"|(?:this|that|it) (?:happens|happened|fails|failed|breaks|broke) because "
    r"|(?:can|could|would) you (?:please )?"
    r"|you (?:did(?:n't| not)|forgot|should have|need)(?: figure out| remember| know)? to "
    r"|you should "
    r"|from now on,? |in future,? |for the future,? "
    r"|(?:in )?short:? |key insight: )",
    re.IGNORECASE,
)
# how a wish becomes a rule, and what is so the thing itself
_REWORDED = (
    (
        re.compile(
            r"^(?:i|we) (?:don't|do not) (?:want|need|like) (?:to (?:have "
            r"|see )?)?(?:an? (?:bunch|lot|couple) of |any )?",
            re.I,
        ),
        "No ",
    ),
    (
        re.compile(
            r"^(?:i|we)(?:'d| would)? (?:want|like|prefer) ((?:the|a|an|all|our|each"
            r"|every) [^,;]{2,60}?) to be ",
            re.I,
        ),
        r"\1 should be ",
    ),
    (
        re.compile(
            r" (?:is|are) (?:not (?:correct|right|true)|wrong),? (?:that|it|this|they)(?:'s| is"
            r"| are| was) ",
            re.I,
        ),
        " is ",
    ),
    (re.compile(r"^/[\w:-]+ "), ""),
    (re.compile(r" that (?:is|are) (\w+ed)\b"), r" \1"),
    (re.compile(r",? please(?=$| \()|,? in step \d+\b"), ""),
)
_ASIDE = re.compile(r"\s+(?:\([^()]+\)|\[[^\[\]]*\])(?!\()")
_SPLIT = re.compile(
    r"(?:[,;:](?=\s|$)|[,;:]?\s(?:[-\u2013\u2014]{1,2}\s|(?:because|since|so that|so both|so|but"
    r"|and then|which|whereas"
    r"|although|even though|even with|unless|weil|aber|sondern|denn|damit|çünkü|ama)\s)|\s*\u2014\s*"
    r"|[\u3001\u3002\uff0c]|\.\s)",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"\s(?:at|in|on|during|for|with|as|via|bei|für|im)\s\S+(?:\s\S+){0,4}$",
    re.IGNORECASE,
)
_POINTS_AWAY = re.compile(
    r"^(?:then|because|of|this|that|it|they|he|she|these|those|there|here|he|we're|i'm|i've|i'll|i'd"
    r"|i|you|your|das|es|bu|o)\b(?!-)|^(?:was|is|are|were|would"
    r"|drop|has|have|had|and|or|both point)\b",
    re.IGNORECASE,
)
_DEICTIC = re.compile(
    r"\b(?:option \w|step \d|lines? \d+|(?:the )?first part|number \d|above|below|here|i just"
    r"|you just|(?:this|that|these|those|it|them))\b",
    re.IGNORECASE,
)
_VAGUE = re.compile(
    r"\b(?:option \w|lines? \d+|first part|number \d|above|below|this one|these|those)\b",
    re.IGNORECASE,
)
_NO_END = re.compile(
    r"\s(?:a|an|the|of|to|and|or|but|with|for|in|on|at|by|from|as|is|are|was|were|be|not|that|which"
    r"|than|into|its"
    r"|my|your|our|their|will|would|can|could|should|must|if|when|while|because|since|so|just|only"
    r"|even|don't|also|has|have|no|then)$",
    re.IGNORECASE,
)
_NAME = re.compile(
    r"`[^`]+`|(?<!\w)'[^'\n]{2,40}'(?!\w)|\"[^\"\n]{2,40}\"|\b\w+[_./-]\w+"
    r"|\b[a-z]+[A-Z]\w+|\b[A-Z]{2,}\b|\b[A-Z][a-z]+[A-Z]\w*|--\w+|\b\d+\.\d+"
)
_VERB = re.compile(
    r"\b(?:is|are|was|were|be|has|have|had|do|don't|doesn't|didn't|can't|cannot|won't|must|should|"
    r"never|use|keep|get|make|fail|run|add|put|avoid|prefer|read|write|require|overwrite|"
    r"return|break|go|drop|ignore|set|support|stay|live|work|want|leave|treat|check|create|"
    r"pin|wrap|split|separate|update|commit|stick|move|test|mock|edit|call|import|log|store|"
    r"verwenden|nutzen|benutzen|ist|sind|hat|haben|müssen|soll|darf|dürfen|wird|werden|\w+ed|\w{3,}s)\b",
    re.IGNORECASE,
)


def of(sentence: str) -> str:
    """Return a title of 4 to 10 words that a sentence has in it, "" if it has none that stands alone."""
    text = _plain(sentence)
    best, most = "", 0.0
    for candidate in _candidates(text):
        points = _points(candidate)
        if points > most:
            best, most = candidate, points
    return _shown(best)


def names(text: str) -> list[str]:
    """Return the names of code in a text: in backticks, paths, identifiers, flags, versions."""
    return list(dict.fromkeys(match.strip("`'\"") for match in _NAME.findall(text)))


def is_vague(sentence: str) -> bool:
    """Whether a sentence points at what only its conversation shows."""
    return bool(_POINTS_AWAY.search(sentence.strip()) or _VAGUE.search(sentence))


def without_fillers(sentence: str) -> str:
    """Return a sentence without the words by which talk begins."""
    text = sentence.strip()
    for _ in range(6):
        shorter = _FILLERS.sub("", text).strip()
        if shorter == text or not shorter:
            return text
        text = shorter
    return text


def reworded(sentence: str) -> str:
    """Return a sentence without the words by which talk begins, a wish as the rule that it is."""
    text = sentence
    for form, shorter in _REWORDED:
        text = form.sub(shorter, without_fillers(text))
    return without_fillers(text)


def _plain(sentence: str) -> str:
    text = sentence.replace("\u2019", "'").replace("**", "").replace("__", "_")
    text = re.sub(r"!?\[([^\]]*)\]\([^)\s]*\)", r"\1", text)
    text = re.sub(r"(?<!\w)[_*](\w[^_*]*\w|\w)[_*](?!\w)", r"\1", text)  # emphasis
    return reworded(" ".join(_ASIDE.sub("", text).split()).strip(" .!?-"))


def _candidates(text: str) -> list[str]:
    """Return pieces of a sentence that may be its title, the whole first."""
    ends = [
        0,
        *(place for match in _SPLIT.finditer(text) for place in match.span()),
        len(text),
    ]
    pieces = list(zip(ends[::2], ends[1::2], strict=True))
    spans = [(begin, end) for at, (begin, _) in enumerate(pieces) for _, end in pieces[at : at + 3]]
    result = []
    for begin, end in [(0, len(text)), *spans]:
        piece = text[begin:end].strip(" ,;:.-\u2014\u3001")
        piece = without_fillers(piece)
        result.append(piece)
        for _ in range(3):
            if words_of(piece) <= MOST:
                break
            shorter = _TAIL.sub("", piece)
            if shorter == piece:
                break
            piece = shorter
            result.append(piece)
    return list(dict.fromkeys(filter(None, result)))


def words_of(text: str) -> int:
    """Return how many words a text has; of a script without spaces a word counts for three signs."""
    wide = sum("\u3040" <= char <= "\u9fff" for char in text)
    return len(re.sub(r"[\u3040-\u9fff]+", " ", text).split()) + wide // 3


def _points(text: str) -> float:
    count = words_of(text)
    wide = any("\u3040" <= char <= "\u9fff" for char in text)
    least = 3 if wide or any("\uac00" <= char <= "\ud7a3" for char in text) else LEAST
    if not least <= count <= MOST or len(text) > _MOST_TITLE or _NO_END.search(text):
        return 0
    if text.isascii() and not _VERB.search(_NAME.sub("", text)):
        return 0
    points = 2.0 + 0.3 * min(count, 8) + min(2, len(_NAME.findall(text))) * 0.7
    if _POINTS_AWAY.search(text):
        points -= 2.5
    if _DEICTIC.search(text):
        points -= 1.5
    if text.count("(") != text.count(")") or text.count("`") % 2 or text.count('"') % 2:
        return 0
    return points if points >= 2 else 0


def _shown(text: str) -> str:
    text = text.strip(' .,;:!?-"').removesuffix(" right")
    if text.count('"') % 2:
        text = text.replace('"', "")
    first = text.split(" ")[0]
    is_word = first.replace("'", "").isalpha() and first.islower() and len(first) > 1
    return text[:1].upper() + text[1:] if is_word else text


# The sentences that a person wrote in a prompt, without the output and the code that was pasted.

MOST_LOOKED_AT = 12_000  # characters of a prompt
MOST_WORDS = 60
_PASTED = re.compile(
    r"^\s*(?:[$#>%\u276f]\s|\d{4}-\d\d-\d\d|\d+[.:|]\s*\S*[{}();=]|at \S+\(|File \"|Traceback"
    r"|\[[\w:-]+\]|\+|-{2,}|={2,}|@@"
    r"|remote:|error:|fatal:|warning:|hint:|npm |ERROR|INFO|WARN|DEBUG|https?://\S+\s*$"
    r"|[\w.-]+@[\w.-]+[ :])"
    r"|[{};]\s*$|^\s*[\w./-]+:\d+|\)\s*\{?$|^\s*\S+\s*$|[\u2713\u2705\u274c\U0001f300-\U0001faff]",
)
_CODE_SIGNS = re.compile(r"[{}<>=|\\;$_/\[\]#*+~^]")
_QUOTED = re.compile(r"^\s*>")
_MENTION = re.compile(r"\[Image #?\d*\]|\[Pasted text[^\]]*\]")


def sentences(text: str) -> list[str]:
    """Return the sentences of a prompt that a person wrote, in their order."""
    text = _MENTION.sub("", text[:MOST_LOOKED_AT])
    result: list[str] = []
    lines = vocabulary.plain_lines(text)
    is_paste = len(lines) > 12
    for line, kind in lines:
        if kind == vocabulary.HEADING or _QUOTED.match(line):
            continue
        if line.isascii() and _PASTED.search(line) and (is_paste or len(line.split()) < 4):
            continue
        for sentence in vocabulary.split_sentences(line):
            if is_prose(sentence):
                result.append(sentence)
    return result


def is_prose(sentence: str) -> bool:
    """Whether a line is words of a person, not output."""
    bare = re.sub(r"`[^`]*`|\S*/\S+", "", sentence)
    letters = sum(map(str.isalpha, bare))
    signs = len(_CODE_SIGNS.findall(bare))
    many = len(sentence.split())
    return (
        many <= MOST_WORDS
        and letters >= 4
        and letters > 0.55 * len(bare.replace(" ", ""))
        and signs <= 2 + many // 12
    )
