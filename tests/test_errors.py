"""Errors say whose they are, and nothing else is taken for one of them."""

import pytest

from seal.errors import (
    ConfigError,
    EnvironmentFailure,
    MissingExtra,
    ModelFailure,
    SealError,
    StorageFailure,
    TemplateError,
    ToolError,
    blame,
    did_you_mean,
    missing_extra,
)


def test_exit_codes_tell_the_users_input_from_the_world_outside():
    assert {error.exit_code for error in (ConfigError, MissingExtra, TemplateError)} == {2}
    assert {e.exit_code for e in (EnvironmentFailure, ModelFailure, StorageFailure)} == {3}


def test_a_tools_no_is_no_failure_of_ours():
    assert not issubclass(ToolError, SealError)


def test_a_refusal_cites_rules_by_their_names_only():
    refusal = ToolError("taken", "No.", argument="hour", allowed=[1], unit=None)
    assert refusal.rules == {"allowed": [1]}
    with pytest.raises(TypeError, match="Did you mean 'maximum'"):
        ToolError("taken", "No.", maximun=3)


def test_blame_names_what_was_done_and_keeps_the_cause():
    said = pytest.raises(EnvironmentFailure, match="reset: ZeroDivisionError")
    with said as caught, blame(EnvironmentFailure, "reset"):
        1 / 0  # noqa: B018
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("error", [ToolError("a", "b"), ModelFailure("x"), KeyboardInterrupt()])
def test_blame_lets_speech_nearer_blame_and_interruptions_pass(error):
    with pytest.raises(type(error)) as caught, blame(EnvironmentFailure, "reset"):
        raise error
    assert caught.value is error


def test_a_guess_is_made_only_where_something_is_close():
    assert did_you_mean("dya", ["day", "hour"]) == "\nDid you mean 'day'?"
    assert did_you_mean("xyz", ["day", "hour"]) == ""


def test_a_missing_extra_says_the_command_that_installs_it():
    assert "pip install 'seal-coevolve[bfcl]'" in str(missing_extra("bfcl", "bfcl"))
