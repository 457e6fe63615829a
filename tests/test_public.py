"""The public names: what is offered is there, is explained, and is what it says."""

import importlib
import inspect
import subprocess
import sys

import pytest

import seal


@pytest.mark.parametrize("name", seal.__all__)
def test_every_public_name_is_there_and_explained(name: str):
    member = getattr(seal, name)
    assert callable(member)
    assert inspect.getdoc(member), f"seal.{name} has no docstring"
    assert member.__doc__ != getattr(object, "__doc__", "")


def test_all_is_sorted_complete_and_of_about_fifteen_names():
    assert seal.__all__ == sorted(set(seal.__all__))
    assert set(seal.__all__) == set(seal._HOME_OF)
    assert 10 <= len(seal.__all__) <= 21


def test_what_type_checkers_are_told_is_what_there_is():
    source = inspect.getsource(seal)
    for home, names in seal._HOMES.items():
        assert f"from {home} import {', '.join(names)}\n" in source
        for name in names:
            assert getattr(importlib.import_module(home), name) is getattr(seal, name)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'seal' has no attribute 'evolv'"):
        seal.evolv  # noqa: B018


@pytest.mark.parametrize("name", ["evolve", "diagnose"])
@pytest.mark.parametrize(
    "program",
    [
        "from seal import {name}",
        "import seal.{name}; from seal import {name}",
        "import seal.{name}.run; from seal import {name}",
        "from seal import {name}; import seal.{name}.run",
        "import seal; seal.{name}; from seal.{name} import run; {name} = seal.{name}",
    ],
)
def test_a_function_stays_one_whatever_else_is_imported(name: str, program: str):
    code = f"{program.format(name=name)}\nassert callable({name}), type({name})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_gate_may_be_imported_and_evolve_stays_the_function():
    importlib.import_module("seal.evolve.gate")
    from seal import evolve

    assert inspect.isfunction(evolve)
    assert inspect.isfunction(seal.evolve)


def test_the_version_is_said_once():
    assert seal.__version__.count(".") == 2
