"""An expression of a template makes no more than a block may hold; the usual ones are as ever."""

from pathlib import Path

import pytest

from seal.envs import load_environment
from seal.envs.template import EnvironmentTemplate
from seal.errors import TemplateError
from tests.factories import write_environment


def lamp(folder: Path, body: str) -> EnvironmentTemplate:
    """A lamp whose tool is described so, in the second line of its file."""
    words = f'{{% extends "_tool.jinja" %}}\n{{% block description %}}{body}{{% endblock %}}\n'
    return load_environment(write_environment(folder / "lamp", tools={"dim": words}, slots=""))


def complaint(folder: Path, body: str) -> str:
    with pytest.raises(TemplateError) as caught:
        lamp(folder, body)
    return str(caught.value)


@pytest.mark.parametrize(
    "body",
    [
        "{{ 'a' * 10**9 }}",
        "{% set n = 10**9 %}{{ n * 'a' }}",
        "{{ ([0] * 10**9)|length }}",
        "{{ 10**(10**10) }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ '%*d'|format(1000000000, 1) }}",
        "{{ '{:1000000000d}'.format(1) }}",
        "{{ 'a'.ljust(10**9) }}",
        "{{ 'a'|center(width=10**9) }}",
        "{{ 'a'|indent(10**9, true) }}",
        "{{ 'abc'|slice(10**9)|list|length }}",
        "{{ {'a': 1}|tojson(indent=10**9) }}",
        "{{ (range(99999)|list)|join('a' * 100000) }}",
        "{{ ('a' * 99999)|replace('a', 'b' * 99999) }}",
        "{{ ('a' * 99999).replace('a', 'b' * 99999) }}",
        "{% set a %}{% for _ in range(99999) %}{{ 'a' * 10000 }}{% endfor %}{% endset %}",
        "{% set n = namespace(a='a') %}"
        "{% for _ in range(40) %}{% set n.a = n.a ~ n.a %}{% endfor %}",
        "{% set n = namespace(a='a') %}"
        "{% for _ in range(40) %}{% set n.a = n.a + n.a %}{% endfor %}",
    ],
)
def test_what_would_fill_the_memory_is_refused_with_its_line(tmp_path, body):
    said = complaint(tmp_path, body)
    assert ":2: block description: it would make more than 1,000,000 characters." in said


@pytest.mark.parametrize(
    "body",
    [
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
        "{% for a in 'x' %}" * 40 + "{% endfor %}" * 40,
        "{% if 1 %}" * 300 + "{% endif %}" * 300,
    ],
)
def test_what_is_nested_too_deeply_is_said_of_its_file(tmp_path, body):
    said = complaint(tmp_path, body)
    assert "dim.jinja: it is nested too deeply (" in said


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("{% for _ in range(99999) %}{{ 'a' * 10000 }}{% endfor %}", "more than 1,000,000 char"),
        ("{{ 10**5000 }}", "Exceeds the limit (4300 digits)"),
        ("{{ '\\ud800' }}", "surrogates not allowed"),
    ],
)
def test_a_block_that_is_no_text_is_refused(tmp_path, body, said):
    message = complaint(tmp_path, body)
    assert "dim.jinja:" in message
    assert said in message


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("{{ 'ab' * 3 ~ 1 ~ none }}", "ababab1None"),
        ("{{ '%05.1f'|format(2000000) }} {{ '%d%%' % 7000000 }}", "2000000.0 7000000%"),
        ("{{ 'call 5551234: {:>4}'.format(7) }}", "call 5551234: 7"),
        ("{{ [1, 2] + [3] }} {{ 2**10 * 3 }} {{ 7 % 4 }} {{ 1.5 + 2 }}", "[1, 2, 3] 3072 3 3.5"),
        ("{{ ['b', 'a']|sort|join(', ') }} {{ 'a b'|replace(' ', '-') }}", "a, b a-b"),
        ("{{ 'x'|center(3) }}{{ 'a'.rjust(2) }}{{ 1234567|string }}", "x a1234567"),
    ],
)
def test_what_is_usual_is_not(tmp_path, body, text):
    template = lamp(tmp_path, body)
    assert template.renderer.tools(template.original)["dim"].description == text
