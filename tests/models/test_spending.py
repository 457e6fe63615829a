"""What model clients may spend together."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from seal.errors import ModelFailure
from seal.models.budget import Budget, BudgetReached
from seal.models.litellm import LanguageModel
from seal.types import Sampling
from tests.models.test_litellm import SAID, client, needs_litellm
from tests.openai_server import openai_server, serving

pytestmark = [pytest.mark.evolve, needs_litellm]


def spend(model: LanguageModel, times: int) -> None:
    for _ in range(times):
        model.complete(SAID, sampling=Sampling(max_tokens=20))


def test_a_budget_is_never_passed():
    # litellm knows this name's price, whoever serves it.
    budget = Budget(0.0005)
    with serving() as server:
        model = client(server.url, model="openai/gpt-4o", budget=budget)
        with pytest.raises(BudgetReached, match="the budget of"):
            spend(model, times=50)
    assert 0 < budget.spent <= 0.0005
    assert budget.spent == pytest.approx(model.spent().dollars)
    assert model.spent().calls == len(server.requests) < 50


def test_a_budget_holds_for_calls_at_the_same_time():
    budget = Budget(0.001)
    with openai_server(slow=0.05) as url:
        model = client(url, model="openai/gpt-4o", budget=budget)

        def made_one(_: int) -> bool:
            try:
                spend(model, times=1)
            except BudgetReached:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            made = list(pool.map(made_one, range(40)))
    assert 0 < sum(made) < 40
    assert 0 < budget.spent <= 0.001


def test_a_failed_call_gives_its_reserve_back():
    budget = Budget(0.0005)
    with openai_server(refuse=(400, "no")) as url:
        model = client(url, model="openai/gpt-4o", budget=budget)
        for _ in range(20):
            with pytest.raises(ModelFailure, match="failed"):
                model.complete(SAID, sampling=Sampling(max_tokens=20))
    assert budget.spent == 0


def test_an_unknown_price_counts_as_nothing_and_says_so():
    with openai_server() as url:
        model = client(url)
        assert model.complete(SAID).usage.dollars == 0.0
        assert not model.price_known
