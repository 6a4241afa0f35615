"""Looking words up before a search: the matches are those of the search alone, in any text."""

from __future__ import annotations

import random

import pytest

from vault_index.check import pattern
from vault_index.check.literals import needs
from vault_index.check.pattern import Pattern

RULES = (*pattern.load("prompt_injection"), *pattern.load("secrets"))
EXAMPLES = [text.replace("¦", "") for rule in RULES for text in (*rule.match, *rule.no_match)]


def lookup(regex: str, text: str) -> list[tuple[int, int]]:
    if not needs(regex).met_by(text.lower()):
        return []
    return [match.span() for match in pattern.matches(regex, text, text.lower())]


def search(regex: str, text: str) -> list[tuple[int, int]]:
    return [match.span() for match in pattern.compiled(regex).finditer(text)]


@pytest.mark.parametrize(
    "regex",
    [
        r"(?i)\b(?:ignore|forget) (?:all|the) rules?\b",
        r"(?i)(?:^|[.!?]\s{0,3}|, )(?:and )?whenever\b",
        r"(?i)^\W{0,6}(?:\w{1,9} )?(?:tool|system)[ _-]?output|^END",
        r"\b[a-z][\w+.-]{0,30}://(?P<user>\w{1,9}):(?!(?P=user)@)\S{3,9}@",
        r"gh[pousr]_[A-Za-z0-9]{6,}",
        r"(?i)(?:(?=agent)(?<!chat )\bagents?\b|\bAIs?\b)",
        r"[A-Z]{2}\d+|(?:ab){2,}|x*y",
        r"\A\W{0,3}(?:the )?model",
        r"(?:[.-]{1,5} ){3,}|[^\s]{20,}",
        "(?i)pass(?:wort|wörter)|忽略|[へ宛]",
    ],
)
def test_matches_are_those_of_a_search(regex: str) -> None:
    chance = random.Random(5)
    parts = [
        *(
            "ignore ",
            "Forget all",
            " rules",
            ". ",
            ", and whenever",
            "\n",
            "END",
            "tool output",
        ),
        *(
            "https://bob:bob@",
            "x://al:secret@h",
            "ghp_abc123Z",
            "chat agent",
            "AIs",
            "ABAB12",
            "abab",
        ),
        *(
            "yy",
            "the model",
            "- . - ",
            "A" * 25,
            "PASSWÖRTER",
            "忽略",
            "宛",
            "\u017f",
            "\u0130",
            " ",
            "*",
        ),
    ]
    found = 0
    for _ in range(400):
        text = "".join(chance.choices(parts, k=chance.randrange(1, 9)))
        assert lookup(regex, text) == search(regex, text), text
        found += len(search(regex, text))
    assert found


@pytest.mark.slow
def test_each_pattern_matches_its_examples_as_a_search_does() -> None:
    chance = random.Random(6)
    for rule in RULES:
        own = [text.replace("¦", "") for text in (*rule.match, *rule.no_match)]
        for text in (*own, "\n".join(chance.sample(EXAMPLES, 8))):
            for regex in rule.regex:
                assert lookup(regex, text) == search(regex, text), (rule.id, regex)


def test_rules_that_may_match_are_looked_up_together() -> None:
    rules = pattern.parse(
        "[[pattern]]\nid = 'a'\nwhy = 'w'\nregex = ['hidden trap', 'x+']\n"
        "[[pattern]]\nid = 'b'\nwhy = 'w'\nregex = '[A-Z]{30}'\n"
        "[[pattern]]\nid = 'c'\nwhy = 'w'\nregex = 'nowhere'\n"
    )

    def ids(text: str) -> list[str]:
        return [rule.id for rule in pattern.possible(rules, text.lower())]

    assert ids("a hidden trap") == ["a"]
    assert ids("A" * 30) == ["a", "b"]  # x+ needs nothing that is looked up
    assert pattern.possible((), "anything") == []


def test_a_pattern_of_no_file_finds_as_well() -> None:
    (rule,) = pattern.parse("[[pattern]]\nid = 'a'\nwhy = 'b'\nregex = 'two words'\n")
    assert isinstance(rule, Pattern)
    assert [match[0] for match in rule.find("two words", "two words")] == ["two words"]
    with pytest.raises(ValueError, match="unknown key index"):
        pattern.parse("[[pattern]]\nid = 'a'\nwhy = 'b'\nregex = 'c'\nindex = 1\n")
