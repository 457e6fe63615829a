"""The litellm client over real HTTP, against the local server."""

import importlib.util
import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from seal.config import ModelConfig
from seal.errors import ConfigError, ModelFailure
from seal.models.cassette import Cassette
from seal.models.failures import masked, shown_url
from seal.models.litellm import LanguageModel, LiteLLMPolicy, open_litellm_policy
from seal.models.protocol import Message, PolicyInput
from seal.types import RenderedTool, Sampling, Task, ToolCall, Usage, UserTurn
from tests.openai_server import openai_server, serving

needs_litellm = pytest.mark.skipif(
    importlib.util.find_spec("litellm") is None and not os.environ.get("CI"),
    reason="needs the lm extra (litellm)",
)
pytestmark = [pytest.mark.evolve, needs_litellm]

SECRET = "sk-live-0123456789abcdef"
PASSWORD = "hunter2hunter2"
SAID = [Message("user", "Please dim the lamp to 40 percent.")]
DIM = RenderedTool(
    name="dim",
    description="Dim the lamp to a level in percent.",
    parameters={
        "type": "object",
        "properties": {"level": {"type": "integer"}},
        "required": ["level"],
    },
)


def client(url: str | None, *, model: str = "openai/test", retries: int = 0, **more: object):
    config = ModelConfig(retries=retries, timeout_s=5.0, max_tokens=100)
    return LanguageModel(model, config, base_url=url, backoff_s=0.01, **more)


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_tools_travel_natively_and_calls_come_back_as_written():
    with serving() as server:
        done = client(server.url).complete(SAID, [DIM])
    sent = server.requests[0]
    assert sent["tools"][0]["function"] == {
        "name": "dim",
        "description": DIM.description,
        "parameters": DIM.parameters,
    }
    assert [(c.tool, c.arguments) for c in done.calls] == [("dim", '{"level": 40}')]
    assert done.usage.calls == 1
    assert done.usage.prompt_tokens > 0


def test_sampling_and_seed_reach_the_server():
    with serving() as server:
        sampling = Sampling(temperature=0.3, max_tokens=7)
        client(server.url).complete(SAID, sampling=sampling, seed=11)
    sent = server.requests[0]
    assert (sent["temperature"], sent["max_tokens"], sent["seed"]) == (0.3, 7, 11)


@pytest.mark.parametrize(
    "arguments", ["not json", '{"level": 4', '{"level": 40,  "level": 41}', "[]", ""]
)
def test_raw_arguments_are_evidence_and_are_kept_to_the_letter(arguments: str):
    call = {"id": "a", "type": "function", "function": {"name": "dim", "arguments": arguments}}
    script = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    with openai_server(script=script) as url:
        done = client(url).complete(SAID, [DIM])
    assert [c.arguments for c in done.calls] == [arguments]


def test_a_call_without_a_name_is_a_call_of_no_tool():
    call = {"id": "a", "type": "function", "function": {"name": None, "arguments": "{}"}}
    script = [{"role": "assistant", "content": "", "tool_calls": [call]}]
    with openai_server(script=script) as url:
        assert client(url).complete(SAID, [DIM]).calls == (
            ToolCall(id="a", tool="", arguments="{}"),
        )


def test_ids_that_a_server_repeats_are_told_apart():
    function = {"name": "dim", "arguments": "{}"}
    calls = [{"id": "x", "type": "function", "function": function} for _ in range(2)]
    script = [{"role": "assistant", "content": None, "tool_calls": calls}]
    earlier = Message("assistant", "", (ToolCall(id="x", tool="dim", arguments="{}"),))
    dialogue = [*SAID, earlier, Message("tool", "ok", call_id="x"), Message("user", "again")]
    with openai_server(script=script) as url:
        ids = [c.id for c in client(url).complete(dialogue, [DIM]).calls]
    assert len({*ids, "x"}) == 3


def test_a_dialogue_with_malformed_calls_goes_on_in_a_form_that_servers_take():
    bad = Message("assistant", "", (ToolCall(id="a", tool="", arguments="level=4"),))
    dialogue = [*SAID, bad, Message("tool", "This is not a call.", call_id="a")]
    with serving() as server:
        client(server.url).complete(dialogue, [DIM])
    function = server.requests[0]["messages"][1]["tool_calls"][0]["function"]
    assert function == {"name": "unnamed", "arguments": '{"unreadable": "level=4"}'}


def test_passing_failures_are_tried_again():
    with serving(fail=2) as server:
        done = client(server.url, retries=2).complete(SAID, [DIM])
    assert done.calls
    assert len(server.requests) == 3


def test_tries_run_out_and_the_message_says_what_the_server_said():
    with serving(fail=9) as server, pytest.raises(ModelFailure) as found:
        client(server.url, retries=1).complete(SAID)
    assert len(server.requests) == 2
    assert "answered 503 (2 tries)" in str(found.value)
    assert "the model is loading" in str(found.value)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_lasting_failures_are_not_tried_again(status: int):
    with serving(refuse=(status, "no")) as server, pytest.raises(ModelFailure):
        client(server.url, retries=3).complete(SAID)
    assert len(server.requests) == 1


def test_a_slow_server_is_a_timeout():
    config = ModelConfig(retries=0, timeout_s=0.2)
    with openai_server(slow=1.0) as url, pytest.raises(ModelFailure, match="no answer in time"):
        LanguageModel("openai/test", config, base_url=url).complete(SAID)


def test_a_closed_port_is_named_with_what_to_do():
    url = f"http://127.0.0.1:{closed_port()}/v1"
    for attempt in (client(url).complete, lambda _: client(url).check(tools=True)):
        with pytest.raises(ModelFailure) as found:
            attempt(SAID)
        assert f"no model server answers at {url}" in str(found.value)
        assert "--base-url" in str(found.value)
        assert f"curl {url}/models" in str(found.value)


@pytest.mark.parametrize("behaviour", [
    {"no_tools": True},
    {"refuse": (400, '"auto" tool choice requires --enable-auto-tool-choice to be set')},
    {"refuse": (500, "tools param requires --jinja flag")},
    {"refuse": (404, "No endpoints found that support tool use")},
])  # fmt: skip
def test_a_server_that_refuses_tools_is_told_from_one_that_fails(behaviour: dict):
    with serving(**behaviour) as server, pytest.raises(ModelFailure) as found:
        client(server.url, retries=3).complete(SAID, [DIM])
    assert "does not accept tools" in str(found.value)
    assert "native tool calling" in str(found.value)
    assert len(server.requests) == 1


def test_a_hosted_model_known_to_take_no_tools_is_refused_without_a_call(monkeypatch):
    monkeypatch.setenv("DEEPSEEK_API_KEY", SECRET)
    with pytest.raises(ModelFailure, match="does not accept tools"):
        client(None, model="deepseek/deepseek-reasoner").check(tools=True)


def test_an_unknown_provider_is_guessed_at():
    with pytest.raises(ConfigError) as found:
        client(None, model="opnai/gpt-4o").check()
    assert "Did you mean 'openai'?" in str(found.value)


def test_a_missing_key_is_named_by_its_variable(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="export OPENAI_API_KEY="):
        client(None, model="openai/gpt-4o").complete(SAID)


def test_an_unknown_model_says_where_the_models_are_listed():
    refuse = (404, "model 'tset' not found")
    with openai_server(refuse=refuse) as url, pytest.raises(ModelFailure) as found:
        client(url, model="openai/tset").complete(SAID)
    assert "no such model: " in str(found.value)
    assert f"curl {url}/models" in str(found.value)


def test_a_dialogue_past_the_window_says_so():
    words = "This model's maximum context length is 8192 tokens. Reduce the length."
    longer = pytest.raises(ModelFailure, match="longer than the model can read")
    with openai_server(refuse=(400, words)) as url, longer:
        client(url).complete(SAID, [DIM])


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 503])
@pytest.mark.parametrize("tools", [(), (DIM,)])
def test_no_message_ever_holds_a_key(status: int, tools: tuple, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("SOME_PASSWORD", "correct-horse")
    said = f"bad key {SECRET} or sk-proj-abc*****wxyz of ann:{PASSWORD} / correct-horse, no tools"
    with openai_server(refuse=(status, said)) as url, pytest.raises(ModelFailure) as found:
        client(url.replace("//", f"//ann:{PASSWORD}@"), retries=1).complete(SAID, tools)
    assert_silent(found.value)


def test_an_unreachable_address_shows_neither_user_nor_password(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    url = f"http://ann:{PASSWORD}@127.0.0.1:{closed_port()}/v1?token={SECRET}"
    for attempt in (client(url).complete, lambda _: client(url).check()):
        with pytest.raises(ModelFailure) as found:
            attempt(SAID)
        assert_silent(found.value)


@pytest.mark.parametrize("url", [f"ann:{PASSWORD}@localhost:1/v1", "localhost:1/v1", "[::1"])
def test_an_address_without_a_scheme_is_the_users_to_fix(url: str):
    with pytest.raises(ConfigError, match="Write it with its scheme") as found:
        client(url).complete(SAID)
    assert PASSWORD not in str(found.value)


def assert_silent(failure: ModelFailure) -> None:
    """Neither the message nor a chained cause that a traceback would show."""
    assert failure.__cause__ is None
    assert failure.__context__ is None
    for secret in (SECRET, "sk-proj", "wxyz", PASSWORD, "ann:", "correct-horse"):
        assert secret not in str(failure)


def test_the_key_in_the_environment_is_sent_and_a_stand_in_without_one(monkeypatch):
    with serving() as server:
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        client(server.url).complete(SAID)
        monkeypatch.setenv("OPENAI_API_KEY", SECRET)
        client(server.url).complete(SAID)
    assert server.keys == ["Bearer unused", f"Bearer {SECRET}"]


def test_masking_keeps_what_is_no_secret(monkeypatch):
    monkeypatch.setenv("EMPTY_KEY", "")
    assert masked("the model is loading", None) == "the model is loading"
    assert shown_url("https://api.example.org/v1") == "https://api.example.org/v1"


def test_concurrent_calls_answer_their_own_requests():
    with openai_server(slow=0.02) as url:
        model = client(url)

        def level(wanted: int) -> str:
            said = [Message("user", f"Please dim the lamp to {wanted} percent.")]
            return model.complete(said, [DIM]).calls[0].arguments

        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(level, range(24)))
    assert found == [f'{{"level": {wanted}}}' for wanted in range(24)]
    assert model.spent().calls == 24


def policy_input(sample: int = 0) -> PolicyInput:
    task = Task(id="t", scenario="t", turns=(UserTurn(user=SAID[0].content),))
    return PolicyInput(tuple(SAID), (DIM,), task, 0, {}, sample, 3, Sampling(temperature=0.5))


def test_the_policy_acts_with_the_settings_of_its_rollout():
    with serving() as server:
        policy = LiteLLMPolicy("openai/test", client(server.url))
        replies = [policy.act(policy_input(sample)) for sample in (0, 1, 0)]
    assert replies[0].calls[0].tool == "dim"
    assert replies[0].usage == Usage(
        calls=1,
        prompt_tokens=replies[0].usage.prompt_tokens,
        completion_tokens=replies[0].usage.completion_tokens,
    )
    seeds = [sent["seed"] for sent in server.requests]
    assert seeds[0] == seeds[2] != seeds[1]
    assert {sent["temperature"] for sent in server.requests} == {0.5}


def test_the_policy_reads_results_and_answers():
    with openai_server() as url:
        policy = open_litellm_policy("openai/test", url, ModelConfig(), None)
        first = policy.act(policy_input())
        result = Message("tool", "level 40", call_id=first.calls[0].id)
        given = policy_input()
        later = (*given.messages, Message("assistant", "", first.calls), result)
        second = policy.act(PolicyInput(later, given.tools, given.task, 0, {}, 0, 3, Sampling()))
    assert second.calls == ()
    assert "level 40" in second.content


def test_answers_of_a_cassette_need_no_server_and_cost_nothing(tmp_path):
    with openai_server() as url:
        made = client(url, cassette=Cassette(tmp_path / "c.jsonl")).complete(SAID, [DIM])
    model = client("http://127.0.0.1:9/v1", cassette=Cassette(tmp_path / "c.jsonl"))
    model.check(tools=True)
    replayed = model.complete(SAID, [DIM])
    assert (replayed.content, replayed.calls) == (made.content, made.calls)
    assert replayed.usage == model.spent() == Usage()
    with pytest.raises(ModelFailure, match="no model server answers"):
        model.complete(SAID, [DIM], seed=99)


def test_waits_double_and_are_the_same_for_the_same_seed():
    waits = [
        [LanguageModel("openai/test", seed=seed)._wait(n, _busy()) for n in range(4)]
        for seed in (1, 1, 2)
    ]
    assert waits[0] == waits[1] != waits[2]
    assert all(0.5 * 2**n <= wait <= 1.5 * 2**n for n, wait in enumerate(waits[0]))


def _busy():
    from seal.models.failures import Failed

    return Failed("busy", passing=True, words="", status=503, wait_s=None)


def test_the_module_alone_imports_no_litellm():
    code = "import sys, seal.models.litellm; sys.exit('litellm' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_missing_litellm_says_how_to_install_it():
    code = (
        "import sys\n"
        "sys.modules['litellm'] = None\n"
        "from seal.errors import MissingExtra\n"
        "from seal.models.litellm import LanguageModel\n"
        "try:\n"
        "    LanguageModel('openai/x').check()\n"
        "except MissingExtra as missing:\n"
        "    sys.exit(\"pip install 'seal-coevolve[lm]'\" not in str(missing))\n"
        "sys.exit(9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_litellm_says_nothing_and_reads_no_dotenv(tmp_path):
    (tmp_path / ".env").write_text("OPENAI_API_KEY=from-dotenv\n")
    code = (
        "import os\n"
        "from seal.errors import ConfigError, ModelFailure\n"
        "from seal.models.litellm import LanguageModel\n"
        "from seal.models.protocol import Message\n"
        "for name in ('opnai/x', 'openai/gpt-4o'):\n"
        "    try:\n"
        "        LanguageModel(name).complete([Message('user', 'hi')])\n"
        "    except (ConfigError, ModelFailure):\n"
        "        continue\n"
        "    raise SystemExit(9)\n"
        "assert 'OPENAI_API_KEY' not in os.environ\n"
    )
    environment = {k: v for k, v in os.environ.items() if k != "OPENAI_API_KEY"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
