"""A quote holds if it stands in the transcript that the agent had, whatever the journal has of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.learn.test_propose import CORRECTION, cards, entry, propose
from tests.support.commands import run as run_command
from tests.support.conversations import Conversation, about_redirects
from tests.support.files import MakeVault, commit, lesson_text, write
from vault_index import api, client
from vault_index.learn import gate
from vault_index.proposals import review
from vault_index.vault import Vault, open_vault

PRINTED = "order 4711 was booked twice on the sixth of November"
SAID = "The login redirect loses the query string, please correct that"
BROKEN = "deadlock detected while two workers booked order 4711"
LONG_AGO = "The redirect dropped the query because it was built from the path alone."
QUESTION = "Should uploads be retried after the server said 409?"
ANSWER = "never retry an upload of a 409"


@pytest.fixture
def team(make_vault: MakeVault, own_world: Path, text_only: None) -> Vault:
    vault = make_vault({"devops/heap.md": lesson_text("Raise the heap", "Set NODE_OPTIONS in CI.")})
    commit(vault.root)
    return open_vault(vault.root)


def holds(team: Vault, quote: str, **more: str) -> bool:
    """Whether an entry with a quote is proposed, with that quote."""
    answer = propose(team, entry(quotes=[quote]), **more)
    reasons = [each.reason for each in answer.dropped]
    assert reasons in ([], [gate.NO_QUOTE]), reasons
    kept = [quote in each.quotes for each in answer.proposals]
    for each in answer.proposals:
        review.drop(team, each.id)
    return kept == [True]


def talk(team: Vault) -> Conversation:
    """A session in which the person, the agent and programs said something."""
    talk = about_redirects(team.root)
    talk.runs("psql -c 'select * from orders'", f"id | text\n1 | {PRINTED}\n(1 row)")
    talk.runs("make book", f"Exit code 2\n{BROKEN}", failed=True)
    return talk.asks(CORRECTION)


def resumed(team: Vault, first: Conversation) -> Conversation:
    """Another session, whose file begins with a copy of the first, as a fork's does."""
    second = Conversation(team.root, "resumed")
    copied = [line.replace(first.id.encode(), second.id.encode()) for line in first._talk.lines]
    second._talk.lines += copied
    return second.asks("go on with the login, please").says("The login keeps its query string.")


EVERY = [SAID, LONG_AGO, PRINTED, BROKEN, CORRECTION]


@pytest.mark.slow
@pytest.mark.parametrize("quote", EVERY)
def test_of_an_unrecorded_session_that_was_imported(team: Vault, quote: str) -> None:
    """Issue 58, row 1: 33 of 50 entries were dropped after an import."""
    talk(team)
    client.ask(str(team.root), api.journal.import_transcripts(since=""))
    assert holds(team, quote)


@pytest.mark.slow
@pytest.mark.parametrize("recorded", [True, False], ids=["recorded", "unrecorded"])
@pytest.mark.parametrize("quote", EVERY)
def test_of_a_resumed_session_from_before_the_resume(
    team: Vault, own_world: Path, quote: str, recorded: bool
) -> None:
    """Issue 58, row 2: the journal keeps only the new part."""
    if recorded:
        write(own_world / "journal" / "recorded", "*\n")
    first = talk(team)
    client.ask(str(team.root), api.journal.import_transcripts(since=""))
    resumed(team, first)
    assert holds(team, quote)


def test_of_what_a_command_printed_that_succeeded(team: Vault) -> None:
    """Issue 58, row 3."""
    talk(team)
    propose(team, entry(quotes=[PRINTED]))
    (card,) = cards(team)
    assert (card.quote, card.speaker) == (PRINTED, "a program")


def test_of_the_journal_where_the_transcript_is_gone(team: Vault) -> None:
    first = talk(team)
    client.ask(str(team.root), api.journal.import_transcripts(since=""))
    first.file.unlink()
    assert holds(team, CORRECTION, session=first.id)


def test_without_a_transcript_the_card_says_that_quotes_were_not_looked_up(team: Vault) -> None:
    answer = propose(team, entry())
    assert (answer.is_read, len(answer.proposals)) == (False, 1)
    (card,) = cards(team)
    assert (card.quotes, card.session) == ((CORRECTION,), "")
    (said,) = (each["message"] for each in card.findings if each["rule"] == gate.QUOTES)
    assert said == "quotes were not looked up: no transcript of this session"
    assert said in run_command("lessons", "review", card.id, cwd=team.root).out


@pytest.mark.slow
def test_what_the_vault_printed_and_what_was_proposed_before_prove_nothing(team: Vault) -> None:
    made_up = "the quokka never eats before the noon of a monday"
    session = talk(team)
    session.runs("lessons show devops/heap", f"# Raise the heap\n\n> {made_up}")
    session.runs(f"echo '[{made_up}]' | lessons propose", "dropped: its title")
    session.calls("mcp__lessons__propose", made_up)
    assert not holds(team, made_up)


@pytest.mark.slow
def test_what_is_excluded_or_was_forgotten_proves_nothing(team: Vault, own_world: Path) -> None:
    write(team.config.home / "config.toml", '[journal]\nexclude = ["private/*"]\n')
    session = talk(team)
    session.runs("cat private/plan.txt", "we sell the shop to the others in May")
    session.runs(
        "grep -r shop .", "private/plan.txt: no\nREADME.md: the shop sells books on Monday"
    )
    assert not holds(team, "we sell the shop to the others in May")
    assert holds(team, "README.md: the shop sells books on Monday")
    client.ask(str(team.root), api.journal.import_transcripts(since=""))
    run_command("lessons", "journal", "forget", "--matching", "nginx.conf", "--yes", cwd=team.root)
    assert not holds(team, CORRECTION)
    assert holds(team, SAID)


def speaker(team: Vault, quote: str) -> str:
    (made,) = propose(team, entry(quotes=[quote])).proposals
    (card,) = (each for each in cards(team) if each.id == made.id)
    return card.speaker


@pytest.mark.parametrize(("quote", "said_by"), [(QUESTION, "the agent"), (ANSWER, "a person")])
def test_only_the_answer_to_a_question_is_the_persons_word(
    team: Vault, quote: str, said_by: str
) -> None:
    """Issue 58, row 4."""
    session = talk(team)
    asked = {"question": QUESTION, "options": [{"label": "yes", "description": "three times"}]}
    answer = f'User has answered your questions: "{QUESTION}"="{ANSWER}". You can now continue'
    session._after(session._talk.calls("AskUserQuestion", answer, questions=[asked]))
    assert speaker(team, quote) == said_by


@pytest.mark.parametrize("pasted", [PRINTED, "src/a.ts(3,5): error TS2322: not assignable here"])
def test_what_a_person_pasted_is_a_programs_word(team: Vault, pasted: str) -> None:
    """Issue 58, row 4: an output that came before, or what looks like one."""
    session = talk(team)
    session.asks(f"what does this mean, and why does it happen on Mondays\n{pasted}")
    assert speaker(team, pasted) == "a program"


MD5 = "48f554e407de50ea53be22030173682f"
SKIPPED = "Cancelled: parallel tool call Bash(make book) errored"
SUMMED = "The person decided that the uploader never retries a 409 of the depot."
PEER = "The reviewer of the depot found that its cache is never emptied."
KINDS = {
    "a result of a test": "--- PASS: TestDepot/books_an_order_twice (0.00s)",
    "a call that did not run": SKIPPED,
    "what has a hash": f"15:02:07 prepare-commit-msg AFTER: {MD5}",
    "behind a tag that is only named": "return strip(text) # of what an editor injected",
    "a line in the middle of a failure": "case 700: the depot answered with nothing at all",
    "a result before its call": "35 // DenyRefs refuses whatever the depot sends",
    "five short words": "53 os.Exit(m.Run())",
    "the line of an answer": f'User has answered your questions: "{QUESTION}"="{ANSWER}"',
    "a summary of what went before": SUMMED,
    "what another agent said": PEER,
}


def session_of_kinds(team: Vault) -> Conversation:
    session = talk(team)
    session.runs(
        "go test -v ./...", f"=== RUN\n{KINDS['a result of a test']}\n53\tos.Exit(m.Run())"
    )
    session.runs("make both", f"<tool_use_error>{SKIPPED}</tool_use_error>", failed=True)
    session.runs("cat debug.log", KINDS["what has a hash"])
    code = "# like <ide_opened_file>, and\n" + KINDS["behind a tag that is only named"]
    session.runs("cat clean.py", f"{code}\n\n<system-reminder>\nCafe latte\n</system-reminder>")
    cases = [f"case {number}: the depot answered with a page" for number in range(1400)]
    cases[700] = KINDS["a line in the middle of a failure"]
    session.runs("make cases", "\n".join(["Exit code 2", *cases]), failed=True)
    session.runs("cat refs.go", KINDS["a result before its call"].replace("35 ", "35\t"))
    lines = session._talk.lines
    lines[-2:] = lines[:-3:-1]
    session._talk.calls(
        "AskUserQuestion", f"{KINDS['the line of an answer']}. You can now continue"
    )
    session._talk.prompt(f"This session is being continued.\n{SUMMED}", isCompactSummary=True)
    return session.asks(f'<teammate-message teammate_id="bo">\n{PEER}\n</teammate-message>')


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS])
def test_of_each_kind_that_was_refused_on_real_transcripts(team: Vault, kind: str) -> None:
    """Issue 58, must show: of 364 lines that were printed 12, of 124 that failed 3 were refused."""
    session_of_kinds(team)
    kept = KINDS[kind].replace(MD5, "[redacted: random text]")
    answer = propose(team, entry(quotes=[KINDS[kind]]))
    assert [each.quotes for each in answer.proposals] == [(kept,)]


def test_what_its_own_program_injected_and_the_header_of_a_diff_prove_nothing(team: Vault) -> None:
    session = session_of_kinds(team)
    session.runs("git diff", "--- a/src/of/the/depot.go\n+++ b/src/of/the/depot.go\n-x\n+y")
    assert not holds(team, "--- a/src/of/the/depot.go")
    assert not holds(team, "Cafe latte")


def test_a_summary_and_another_agent_are_not_the_persons_word(team: Vault) -> None:
    session_of_kinds(team)
    assert speaker(team, SUMMED) == "the agent"
