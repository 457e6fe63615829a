"""The profile adds up what goes wrong, whatever the order, and tells no values."""

import string
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seal.diagnose.profile import (
    EXAMPLES,
    HALF_LIFE,
    ProfileBuilder,
    build_profile,
    shape_of,
)
from seal.diagnose.slots import slots_for
from seal.types import GOLD_SUSPECT, DiagnosedRollout, Diagnosis, Kind, canonical_json

ORIGINAL = "original"


def diagnosis(kind=Kind.REFUSED, tool="book", argument="day", **more):
    more = {"turn": 0, "step": 0, "call_id": "c", "slot": f"{tool}.recovery.refused", **more}
    return Diagnosis(kind=kind, tool=tool, argument=argument, **more)


def diagnosed(name, *diagnoses, reward=0.0, candidate=ORIGINAL, fault=None):
    return DiagnosedRollout(
        rollout=f"{name}#0",
        task=name,
        scenario=name,
        candidate=candidate,
        reward=reward,
        diagnoses=diagnoses,
        fault=fault,
    )


def failed(name, *diagnoses, **more):
    """A failed rollout whose first diagnosis is the fault."""
    return diagnosed(name, *diagnoses, fault=diagnoses[0], **more)


def test_a_row_says_how_often_what_it_cost_and_which_words_could_prevent_it():
    rows = [
        failed("a", diagnosis(code="taken", found='"mo"')),
        failed("b", diagnosis(code="taken", found='"tu"', slot="book.constraint.day")),
        failed("c", diagnosis(Kind.NO_CALL, argument=None, call_id=None)),
        diagnosed("d", diagnosis(recovered=True, code="gone", found="7"), reward=1.0),
        diagnosed("e", Diagnosis(turn=0, kind=Kind.PASS), reward=1.0),
    ]
    profile = build_profile([rows], ORIGINAL)
    assert (profile.rollouts, profile.failed) == (5, 3)
    first, second = profile.rows
    assert (first.tool, first.argument, first.kind) == ("book", "day", Kind.REFUSED)
    assert (first.faults, first.count, first.evolved) == (2.0, 3.0, False)
    assert first.share == pytest.approx(2 / 3, abs=1e-6)
    assert first.mean_reward == pytest.approx(1 / 3, abs=1e-6)
    assert first.recovery_rate == pytest.approx(1 / 3, abs=1e-6)
    assert first.slots == ("book.recovery.refused", "book.constraint.day")
    assert first.codes == ("taken", "gone")
    assert first.shapes == ("lower-case word", "integer")
    assert first.examples == ("a#0", "b#0")
    assert (second.kind, second.argument, second.recovery_rate) == (Kind.NO_CALL, None, None)


def test_what_was_right_and_what_was_unscored_are_in_no_count():
    rows = [
        diagnosed("a", Diagnosis(turn=0, kind=kind), reward=1.0)
        for kind in (Kind.PASS, Kind.CORRECT_ABSTENTION, Kind.CASCADE)
    ]
    rows.append(failed("b", diagnosis(), reward=None))
    profile = build_profile([rows], ORIGINAL)
    assert (profile.rows, profile.rollouts, profile.failed) == ((), 3, 0)


def test_a_rollout_used_in_two_generations_counts_in_the_later_alone():
    once = build_profile([[failed("a", diagnosis())]], ORIGINAL)
    assert build_profile([[failed("a", diagnosis())]] * 2, ORIGINAL) == once


def test_a_rollout_counts_once_however_often_it_shows_a_failure():
    again = [diagnosis(step=step, call_id=str(step)) for step in range(3)]
    (row,) = build_profile([[failed("a", *again)]], ORIGINAL).rows
    assert (row.count, row.faults, row.share) == (1.0, 1.0, 1.0)
    same = diagnosis(Kind.MISSING_CALL, argument=None, call_id=None, step=None)
    (row,) = build_profile([[failed("a", same, same)]], ORIGINAL).rows
    assert (row.count, row.faults, row.share) == (1.0, 1.0, 1.0)
    assert row.examples == ("a#0",)


def test_the_loss_that_rows_say_is_preventable_adds_up_to_the_failures_with_a_fault():
    rows = [failed(name, diagnosis(tool=name)) for name in "abc"]
    rows += [diagnosed("d", diagnosis())]
    profile = build_profile([rows], ORIGINAL)
    assert sum(row.share for row in profile.rows) == pytest.approx(3 / 4, abs=1e-5)


def test_rollouts_under_evolved_words_are_counted_apart():
    rows = [failed("a", diagnosis()), failed("b", diagnosis(), candidate="evolved")]
    rows += [failed("c", diagnosis(tool="other"), candidate="evolved")]
    found = {(row.tool, row.evolved): row.share for row in build_profile([rows], ORIGINAL).rows}
    assert found == {("book", False): 1.0, ("book", True): 0.5, ("other", True): 0.5}


def test_a_count_weighs_half_after_two_generations():
    old, new = [failed("a", diagnosis(tool="old"))], [failed("b", diagnosis(tool="new"))]
    assert HALF_LIFE == 2
    weights = {row.tool: row.faults for row in build_profile([old, [], new], ORIGINAL).rows}
    assert weights == {"old": 0.5, "new": 1.0}
    shares = {row.tool: row.share for row in build_profile([old, [], new], ORIGINAL).rows}
    assert shares == {"old": pytest.approx(1 / 3, abs=1e-6), "new": pytest.approx(2 / 3, abs=1e-6)}
    assert build_profile([old, new], ORIGINAL).rows[1].faults == pytest.approx(0.5**0.5, abs=1e-6)


def test_what_loses_most_comes_first():
    rows = [failed(f"a{n}", diagnosis(tool="rare")) for n in range(2)]
    rows += [failed(f"b{n}", diagnosis(tool="often")) for n in range(3)]
    rows += [diagnosed(f"c{n}", diagnosis(tool="harmless"), reward=1.0) for n in range(9)]
    assert [row.tool for row in build_profile([rows], ORIGINAL).rows] == [
        "often",
        "rare",
        "harmless",
    ]


kinds = st.sampled_from([Kind.REFUSED, Kind.WRONG_ARGUMENT, Kind.NO_CALL, Kind.PASS])
some = st.builds(
    diagnosis,
    kind=kinds,
    tool=st.sampled_from(["a", "b", None]),
    argument=st.sampled_from(["x", None]),
    turn=st.integers(0, 2),
    recovered=st.booleans(),
    code=st.sampled_from(["c", "d", None]),
    found=st.sampled_from(['"a"', '"b1"', "3", ""]),
)


@st.composite
def generations(draw):
    found = []
    for number in range(draw(st.integers(1, 3))):
        rows = []
        for name in range(draw(st.integers(0, 5))):
            diagnoses = draw(st.lists(some, max_size=4))
            blamed = [d for d in diagnoses if d.kind.blames and not d.recovered]
            reward = draw(st.sampled_from([0.0, 1.0, None]))
            rows.append(
                diagnosed(
                    f"{number}-{name}",
                    *diagnoses,
                    reward=reward,
                    candidate=draw(st.sampled_from([ORIGINAL, "evolved"])),
                    fault=blamed[0] if blamed and reward == 0.0 else None,
                )
            )
        found.append(rows)
    return found


@given(generations(), st.randoms())
def test_a_profile_does_not_depend_on_the_order_of_its_rollouts(made, rng):
    before = build_profile(made, ORIGINAL)
    for rows in made:
        rng.shuffle(rows)
    assert build_profile(made, ORIGINAL) == before


@given(generations(), st.data())
def test_adding_a_generation_gives_what_all_of_them_give(made, data):
    builder = ProfileBuilder(ORIGINAL)
    for number, rows in enumerate(made):
        # Rollouts of earlier generations are used again, as a search does.
        earlier = [row for before in made[:number] for row in before]
        if earlier:
            rows += data.draw(st.lists(st.sampled_from(earlier), max_size=3, unique_by=id))
        builder.add(rows)
        assert builder.profile() == build_profile(made[: number + 1], ORIGINAL)


@given(generations(), st.data())
def test_counts_are_the_sum_of_what_each_rollout_weighs_where_it_was_used_last(made, data):
    reused = data.draw(st.lists(st.sampled_from([r for rows in made for r in rows] or [None])))
    made.append(list({id(row): row for row in reused if row}.values()))
    last = {row.rollout: place for place, rows in enumerate(made) for row in rows}
    rows_of = {row.rollout: row for rows in made for row in rows if row.reward is not None}
    expected = Counter()
    for name, row in rows_of.items():
        if row.fault:
            f = row.fault
            place = (f.tool, f.argument, f.kind, row.candidate != ORIGINAL)
            expected[place] += 0.5 ** ((len(made) - 1 - last[name]) / HALF_LIFE)
    profile = build_profile(made, ORIGINAL)
    found = {(r.tool, r.argument, r.kind, r.evolved): r.faults for r in profile.rows if r.faults}
    assert found == pytest.approx(dict(expected), abs=1e-5)
    assert profile.rollouts == len(rows_of)


def test_a_generation_is_added_without_a_look_at_what_was_counted(monkeypatch):
    builder = ProfileBuilder(ORIGINAL)
    old = [failed(name, diagnosis()) for name in "abc"]
    builder.add(old)
    looked = []
    monkeypatch.setattr(
        DiagnosedRollout, "suspect", property(lambda one: looked.append(one.rollout) or "")
    )
    builder.add([failed("d", diagnosis()), old[0]])
    assert sorted(looked) == ["a#0", "a#0", "d#0"]
    assert (builder.profile().rollouts, builder.profile().failed) == (4, 4)


def test_what_is_suspect_is_counted_apart():
    doubt = Diagnosis(turn=0, kind=Kind.UNSCORABLE, code=GOLD_SUSPECT, found="Odd.")
    profile = build_profile([[diagnosed("a", doubt), failed("b", diagnosis())]], ORIGINAL)
    assert (profile.rollouts, profile.failed, profile.suspect) == (1, 1, 1)
    assert profile.rows[0].share == 1.0


@given(generations())
def test_shares_rates_and_rewards_are_in_bounds(made):
    profile = build_profile(made, ORIGINAL)
    for evolved in (False, True):
        shares = [row.share for row in profile.rows if row.evolved == evolved]
        assert sum(shares) <= 1 + 1e-5
    for row in profile.rows:
        assert 0 <= row.share <= 1
        assert row.faults <= row.count + 1e-9
        assert 0 <= row.mean_reward <= 1
        assert row.recovery_rate is None or 0 <= row.recovery_rate <= 1
        assert len(row.examples) <= EXAMPLES
        assert row.kind.blames


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ("14.00", "text like 00.00"),
        ("MO-7b", "text like AA-0a"),
        ("blue", "lower-case word"),
        ("BLUE", "upper-case word"),
        ("Blue", "capitalised word"),
        ("bLUE", "word"),
        ("two words", "several words"),
        ("a_b", "lower-case word"),
        ("a-b", "text"),
        ("", "empty text"),
        ("7" * 30, "text"),
        ("٣é日½", "text like 0aa0"),
        (3, "integer"),
        (3.5, "number"),
        (True, "true, false or null"),
        (None, "true, false or null"),
        ([1], "list"),
        ({"a": 1}, "object"),
    ],
)
def test_a_shape_is_the_form_of_a_value(value, shape):
    assert shape_of(canonical_json(value)) == shape


def test_what_is_no_json_has_no_shape():
    assert shape_of("{broken") == shape_of('"cut off…') == "text"


def masked(text):
    """The text with every letter and digit exchanged for another of its sort."""
    exchange = {
        **dict(zip(string.ascii_lowercase, string.ascii_lowercase[::-1], strict=True)),
        **dict(zip(string.ascii_uppercase, string.ascii_uppercase[::-1], strict=True)),
        **dict(zip(string.digits, string.digits[::-1], strict=True)),
    }
    return "".join(exchange.get(letter, letter) for letter in text)


@given(st.text(string.ascii_letters + string.digits + " .:-_/äßЖ日٣", max_size=24))
def test_values_of_one_form_have_one_shape(text):
    assert shape_of(canonical_json(text)) == shape_of(canonical_json(masked(text)))


@given(st.text(max_size=24).filter(lambda text: not text.isascii() or any(map(str.isalnum, text))))
def test_a_shape_holds_no_letter_or_digit_of_its_value(text):
    shape = shape_of(canonical_json(text))
    if shape.startswith("text like "):
        shown = shape.removeprefix("text like ")
        assert {letter for letter in shown if letter.isalnum()} <= {"a", "A", "0"}
    else:
        assert shape in {
            "lower-case word",
            "upper-case word",
            "capitalised word",
            "word",
            "several words",
            "text",
            "empty text",
        }


@pytest.mark.parametrize(
    ("kind", "argument", "expected"),
    [
        (Kind.ARGUMENT_TYPE, "day", ["book.constraint.day", "book.recovery.argument_type"]),
        (Kind.WRONG_ARGUMENT, "day", ["book.constraint.day"]),
        (Kind.MISSING_CALL, None, ["book.affordance", "system.guidance"]),
        (Kind.NO_CALL, None, ["book.affordance", "system.guidance"]),
        (Kind.WRONG_TOOL, None, ["book.affordance", "system.guidance"]),
        (Kind.SPURIOUS_CALL, None, ["system.guidance", "book.affordance"]),
        (Kind.REFUSED, "day", ["book.recovery.refused", "book.constraint.day"]),
        (Kind.RECOVERY_FAILURE, None, ["book.recovery.refused", "book.affordance"]),
        (Kind.MALFORMED_CALL, None, ["system.recovery.malformed_call"]),
        (Kind.UNKNOWN_TOOL, None, ["system.recovery.unknown_tool"]),
        (Kind.STATE_MISMATCH, None, ["book.affordance"]),
        (Kind.OUTPUT_MISSING, None, ["book.affordance", "system.guidance"]),
    ],
)
def test_each_kind_names_the_words_that_could_have_prevented_it(kind, argument, expected):
    assert slots_for(kind, "book", argument) == expected


def test_a_limit_blames_the_affordances_that_speak_of_what_was_called_most():
    texts = {"look.affordance": "Look first.", "find.affordance": ""}
    assert slots_for(Kind.LIMIT_REACHED, "book", None, called=["look", "find"], texts=texts) == [
        "look.affordance",
        "book.affordance",
        "system.guidance",
    ]
