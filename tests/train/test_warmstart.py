"""The warm start learns from what the policy wrote, and from nothing else."""

import importlib.util
import os

import pytest

from seal.models.chat import Piece

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None and not os.environ.get("CI"),
    reason="needs the train extra (torch, transformers)",
)
pytestmark = [pytest.mark.train, needs_torch, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def tokenizer():
    from seal.models.tiny import tiny_tokenizer

    return tiny_tokenizer(['Book the blue room on Monday, "R7". <tool_call>{"name": "x"}\n'] * 3)


def test_only_sampled_pieces_have_labels(tokenizer):
    from seal.train.warmstart import IGNORED, encode

    pieces = [Piece("Book the room", sampled=False), Piece('"R7"<|im_end|>', sampled=True)]
    row = encode(tokenizer, pieces)
    learned = [i for i, label in zip(row.ids, row.labels, strict=True) if label != IGNORED]
    assert tokenizer.decode(learned) == '"R7"<|im_end|>'
    assert tokenizer.decode(row.ids) == 'Book the room"R7"<|im_end|>'


def test_a_value_has_the_same_tokens_in_words_and_in_a_call(tokenizer):
    def tokens(text: str) -> list[str]:
        return tokenizer.tokenize(text)

    for value in ("R7", "14.00", "D3"):
        words, call = tokens(f'blue="{value}"'), tokens(f'"room": "{value}"')
        inner = tokens(value)
        assert [t for t in words if t in inner][-len(inner) :] == inner
        assert [t for t in call if t in inner][-len(inner) :] == inner


def test_tokens_that_are_told_get_no_gradient(tokenizer):
    import torch

    from seal.models.tiny import tiny_model
    from seal.train.warmstart import collate, encode, loss_of

    model = tiny_model(len(tokenizer), seed=0)
    told = [Piece("Book the blue room", sampled=False), Piece('"R7"', sampled=True)]
    other = [*told, Piece("on Monday, the blue room", sampled=False)]
    losses = [loss_of(model, *collate([encode(tokenizer, p)])).item() for p in (told, other)]
    assert losses[0] == pytest.approx(losses[1], abs=1e-5)
    assert torch.isfinite(torch.tensor(losses)).all()


def test_the_same_settings_train_the_same_weights(tokenizer):
    import torch

    from seal.models.tiny import tiny_model
    from seal.resources import resource_folder
    from seal.train.corpus import Corpus
    from seal.train.warmstart import WarmStartSettings, train_tiny

    settings = WarmStartSettings(
        drill_steps=1, lesson_steps=1, recovery_steps=1, tokens=300, tasks=1
    )

    def trained() -> tuple[dict, list[float]]:
        corpus = Corpus(resource_folder("env_templates") / "rooms", range(1000, 1003))
        model, losses = tiny_model(len(tokenizer), seed=0), []
        train_tiny(model, tokenizer, corpus, settings, lambda _, loss: losses.append(loss))
        return model.state_dict(), losses

    (first, losses), (second, again) = trained(), trained()
    untrained = tiny_model(len(tokenizer), seed=0).state_dict()
    assert losses == again
    assert len(losses) == 3
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not all(torch.equal(first[name], untrained[name]) for name in first)


def test_a_killed_warm_start_goes_on_and_trains_the_same_weights(tokenizer, tmp_path):
    import torch

    from seal.models.tiny import tiny_model
    from seal.resources import resource_folder
    from seal.train.corpus import Corpus
    from seal.train.resume import ResumePoint
    from seal.train.warmstart import WarmStartSettings, train_tiny

    settings = WarmStartSettings(
        drill_steps=2, lesson_steps=1, recovery_steps=1, tokens=300, tasks=1
    )

    def trained(resume: ResumePoint, killed_at: int) -> tuple[dict, list[int]]:
        corpus = Corpus(resource_folder("env_templates") / "rooms", range(1000, 1003))
        model, steps = tiny_model(len(tokenizer), seed=0), []

        def report(step: int, _loss: float) -> None:
            if step == killed_at:
                raise KeyboardInterrupt
            steps.append(step)

        train_tiny(model, tokenizer, corpus, settings, report, resume)
        return model.state_dict(), steps

    with pytest.raises(KeyboardInterrupt):
        trained(ResumePoint(tmp_path / "resume.pt", every_s=0), killed_at=3)
    found, steps = trained(ResumePoint(tmp_path / "resume.pt"), killed_at=-1)
    wanted, _ = trained(ResumePoint(None), killed_at=-1)
    assert steps == [3]
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)


def test_a_structured_start_looks_back_and_matches_before_it_learns_anything():
    import torch

    from seal.models.tiny import tiny_model

    once = torch.randperm(890, generator=torch.Generator().manual_seed(0))[:60] + 5
    ids = once.repeat(2)[None]
    for structured in (True, False):
        model = tiny_model(900, seed=0, structured=structured).eval()
        model.set_attn_implementation("eager")
        with torch.no_grad():
            seen = model(input_ids=ids, output_attentions=True).attentions
        now = torch.arange(60, 119)
        shares = [seen[0][0, head, now, now - head - 1].mean().item() for head in range(2)]
        shares += [seen[1][0, head, now, now - 59 + head].mean().item() for head in range(2)]
        shares.append(seen[1][0, 2, -1, -20:].sum().item())
        assert all((share > 0.9) is structured for share in shares), shares


def test_a_structured_start_looks_up_what_was_found_and_not_only_what_it_just_read():
    import torch

    from seal.models.tiny import _FOUND, _SEEN, HIDDEN, tiny_model

    ids = torch.randperm(890, generator=torch.Generator().manual_seed(0))[:80][None] + 5
    model = tiny_model(900, seed=0).eval()
    model.set_attn_implementation("eager")
    attention = model.model.layers[1].self_attn
    with torch.no_grad():
        # As if a head had learned where to look: the last token is told of that at place 10.
        found = (
            model.model.embed_tokens.weight[ids[0, 10], :_SEEN]
            @ attention.v_proj.weight[2 * 64 : 2 * 64 + len(_FOUND), :_SEEN].T
        )

        def tell(_layer: object, _inputs: object, hidden: torch.Tensor) -> torch.Tensor:
            told = torch.zeros(HIDDEN)
            told[list(_FOUND)] = 20 * found
            return torch.cat([hidden[:, :-1], (hidden[:, -1] + told)[:, None]], dim=1)

        model.model.layers[1].register_forward_hook(tell)
        seen = model(input_ids=ids, output_attentions=True).attentions
    assert seen[2][0, 1, -1, 11] > 0.5
    assert seen[2][0, 2, -1, 12] > 0.5
    assert seen[2][0, 0, -1, 11:13].sum() < 0.5


def test_words_that_dialogues_share_teach_as_if_each_had_its_own(tokenizer):
    import torch

    from seal.models.tiny import tiny_model
    from seal.train.corpus import Lesson
    from seal.train.warmstart import backward, encode, encode_lesson

    words = Piece('Codes: blue="R7".', sampled=False)
    told = [
        Piece(text, sampled=False) for text in ("the blue room", "Book the blue room on Monday")
    ]
    dialogues = [[one, Piece('"R7"<|im_end|>', sampled=True)] for one in told]
    apart = [encode(tokenizer, [words, *dialogue]) for dialogue in dialogues]
    found = []
    for rows in (apart, encode_lesson(tokenizer, Lesson(words, dialogues))):
        model = tiny_model(len(tokenizer), seed=0)
        loss = backward(model, rows)
        found.append([torch.tensor(loss), *(weight.grad for weight in model.parameters())])
    for one, other in zip(*found, strict=True):
        assert (one - other).norm() <= 1e-4 * one.norm()


def test_a_gradient_does_not_depend_on_the_number_of_cores(tokenizer, monkeypatch):
    import torch

    from seal.models.tiny import tiny_model
    from seal.train.warmstart import Encoded, backward

    rows = [Encoded([5 + i % 40 for i in range(n)], [5] * n) for n in (900, 800, 30, 20)]
    rows += [Encoded([5 + i % 40 for i in range(n)], [5] * n, (6, 7, 8)) for n in (90, 20)]
    found = []
    for cores in (1, 2):
        monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
        model = tiny_model(len(tokenizer), seed=0)
        assert backward(model, rows) > 0
        found.append([weight.grad for weight in model.parameters()])
    assert all(map(torch.equal, *found))
