"""Lessons teach reading: what words state is obeyed, and what they do not an error says."""

import json
import random
import re

import pytest

from seal.envs.registry import load_environment
from seal.models.chat import CALL, parse_reply
from seal.models.reading import prescribed, states
from seal.resources import resource_folder
from seal.rollout.agent import Arena
from seal.train.corpus import RECOVERY, Corpus
from seal.train.drills import questions_of
from seal.train.words import PHRASINGS, Mode, lesson_words, nothing_first, phrase

SAID = Mode(share=1.0, messages=False, errs=1.0)


@pytest.fixture(scope="module")
def corpus():
    return Corpus(resource_folder("env_templates") / "rooms", range(1000, 1006))


@pytest.mark.parametrize("held_out", [False, True])
def test_words_that_state_everything_state_every_rule(held_out: bool):
    template = load_environment("rooms@1001")
    words = lesson_words(template, SAID, random.Random(0), held_out=held_out, plans=False)
    arena = Arena(template, words, contract_hash="test")
    for name, contract in arena.contracts.items():
        for rule in contract.rules.values():
            assert states(rule, arena.tools[name].words())
    assert "check_room" in arena.tools["book_room"].words()


def test_the_last_phrasing_of_each_rule_is_in_no_lesson(corpus):
    rng = random.Random(1)
    texts = "".join(corpus.texts(rng, 12))
    for phrasings in PHRASINGS.values():
        opening = phrasings[-1].split("{")[0].strip()
        assert len(phrasings) >= 3
        # One word alone is no phrase.
        assert not re.search(opening if " " in opening else rf"{opening} \d", texts)


def test_a_lesson_says_its_words_once_and_its_calls_are_the_policys_own(corpus):
    rng = random.Random(2)
    for _ in range(10):
        lesson = corpus.lesson(rng, 2)
        assert len(lesson.dialogues) == 2
        assert all("<|im_start|>user" in dialogue[0].text for dialogue in lesson.dialogues)
        pieces = lesson.pieces
        assert not pieces[0].sampled
        assert sum(piece.text.count("<|im_start|>system") for piece in pieces) == 1
        told = "".join(piece.text for piece in pieces if not piece.sampled)
        assert CALL not in told
        assert any(CALL in piece.text for piece in pieces if piece.sampled)


def test_a_lesson_with_messages_shows_an_error_and_the_corrected_call(corpus):
    rng = random.Random(3)
    corrected = 0
    for _ in range(40):
        told = [piece.text for piece in corpus.lesson(rng, 2).pieces if not piece.sampled]
        corrected += any("Not yet." in text and "check_room" in text for text in told)
    assert 0 < corrected < 40


def test_the_same_seed_gives_the_same_lessons(corpus):
    def lessons() -> list:
        rng = random.Random(4)
        return [corpus.lesson(rng, 1) for _ in range(3)] + [corpus.drills(rng, 4, messages=0.5)()]

    assert lessons() == lessons()


def test_loose_words_prescribe_a_call_only_where_they_name_one():
    rng, tools = random.Random(12), ["check", "book"]
    texts = {phrase("requires", rng) for _ in range(300)}
    assert len(texts) > 100
    assert all(prescribed("book", t.replace("{requires}", "check"), tools) for t in texts)
    assert not any(prescribed("book", nothing_first(rng), tools) for _ in range(100))


def test_a_drill_asks_for_values_that_its_line_states(corpus):
    rng = random.Random(5)
    for _ in range(10):
        head, *rest = corpus.value_drill(rng, 6)
        argument = head.text.split(":")[0].strip()
        answers = [piece.text for piece in rest if piece.sampled]
        assert len(answers) == 6
        assert all(answer.startswith(f'"{argument}": ') for answer in answers)


def test_a_lesson_of_few_tools_shows_few_and_calls_no_other(corpus):
    rng, counts = random.Random(6), set()
    for _ in range(20):
        pieces = corpus.lesson(rng, 3, 2).pieces
        shown = {line.split(":")[0] for line in pieces[0].text.splitlines() if line[:1] != " "}
        called = set(re.findall(r'"name": "(\w+)"', "".join(p.text for p in pieces if p.sampled)))
        assert called <= shown
        counts.add(len(shown & set(load_environment("rooms").contract.tools)))
    assert min(counts) == 2
    assert max(counts) < 6


def test_a_plan_drill_calls_first_what_a_tools_line_wants_first(corpus):
    rng = random.Random(7)
    planned = 0
    for _ in range(10):
        head, *rest = corpus.plan_drill(rng, 6)
        lines = dict(line.split(": ", 1) for line in head.text.splitlines())
        for asked, answer in zip(rest[::3], rest[1::3], strict=True):
            *first, own = re.findall(r'"name": "(\w+)"', answer.text)
            assert own == asked.text.strip()
            assert all(name in lines[own] for name in first)
            assert not first or first[0] != own
            planned += bool(first)
            if not first:
                assert not any(name in lines[own] for name in lines)
    assert 10 < planned < 50


def test_a_drill_by_messages_asks_whole_messages_that_mean_one_value(corpus):
    rng = random.Random(8)
    whole = 0
    for _ in range(20):
        _, *rest = corpus.value_drill(rng, 5, messages=True)
        for asked, answer in zip(rest[::3], rest[1::3], strict=True):
            assert answer.sampled
            whole += "<|im_start|>user" in asked.text
    assert 50 < whole <= 100


def test_a_call_drill_asks_for_calls_whose_messages_have_all_they_need(corpus):
    rng = random.Random(11)
    several = 0
    for _ in range(20):
        stated, *rest = corpus.call_drill(rng, 5)
        for asked, answer in zip(rest[::3], rest[1::3], strict=True):
            if "<tool_call>" not in asked.text:
                continue
            _, (call,) = parse_reply(asked.text.split("assistant\n")[1] + answer.text, "call")
            arguments = json.loads(call.arguments)
            assert arguments
            assert all(f" {name}: " in stated.text for name in arguments)
            if "room" in arguments:
                name = re.search(f'(\\w+)="{arguments["room"]}"', stated.text)
                assert name is not None
                assert f"the {name[1]} room" in asked.text
            several += "cancel" in asked.text.lower() and call.tool != "cancel_booking"
    assert several > 5


def test_a_unit_is_drilled_both_where_users_say_it_and_where_they_do_not():
    template = load_environment("rooms@1001")
    for (_, argument), asked in questions_of(template).items():
        as_said = [q for q in asked if q.said == json.loads(q.gold) or q.said == q.gold]
        if argument == "length":
            assert 0 < len(as_said) < len(asked)
        if argument in ("room", "food"):
            assert not as_said


def test_a_correction_drill_changes_the_argument_that_the_error_is_about(corpus):
    rng = random.Random(9)
    for _ in range(10):
        pieces = corpus.correction_drill(rng, 5)
        for told, again in zip(pieces[::3], pieces[1::3], strict=True):
            assert again.sampled
            wrong, right = (
                json.loads(re.search(r"_call>(.*)</", p.text)[1]) for p in (told, again)
            )
            assert wrong["name"] == right["name"]
            sent, mended = wrong["arguments"], right["arguments"]
            assert sum(sent[name] != mended[name] for name in sent) == 1
            assert "<|im_start|>tool" in told.text


def test_a_rule_is_left_out_of_some_tools_or_of_all():
    template = load_environment("rooms@1001")
    some = Mode(share=0.5, messages=True, errs=1.0, whole=0.7)
    seen = set()
    for seed in range(30):
        words = lesson_words(template, some, random.Random(seed), plans=False)
        stated = frozenset(bool(text) for slot, text in words.texts.items() if ".day" in slot)
        seen.add(stated)
    # Left out of one tool it can still be read at another; left out of all, a message has to say.
    assert seen == {frozenset({True}), frozenset({False}), frozenset({True, False})}


def test_a_dialogue_makes_no_error_twice(corpus):
    rng = random.Random(10)
    errors = 0
    for _ in range(40):
        for dialogue in corpus.lesson(rng, 4, mode=RECOVERY).dialogues:
            told = "".join(piece.text for piece in dialogue if not piece.sampled)
            for text in ("That is no day here. ", "There is no such room. "):
                found = re.findall(re.escape(text) + r"(.+)<", told)
                assert len(found) <= 1
                errors += len(found)
    assert errors > 5
