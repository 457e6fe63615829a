"""The gate: a sequential paired test that may stop at any scenario and keep its promise.

The unit is a scenario: d is the difference of its mean scores under child and parent, in [-1, 1].
A bettor who stakes the share lambda of their capital on the child has prod(1 + lambda d) after the
scenarios; averaged over lambda in (0, 1) this is a test martingale under "the child is no better on
average", so by Ville's inequality it ever reaches 1/alpha with probability at most alpha.
"""

import math
from dataclasses import dataclass, field

from seal.config import GateConfig
from seal.evolve.lineage import GateResult, TestKind, Verdict
from seal.rollout.scores import UNSCORED_SHARE, mean_interval

_GRID = 50
_STAKES = tuple((i + 0.5) / _GRID for i in range(_GRID))
OWN_EVIDENCE = 20.0
"""Evidence that a patch is missed when it is taken back: it then stands by itself."""
ALL_ALIKE = 40
"""Scenarios without any difference after which a test stops."""


def level(alpha: float, k: int) -> float:
    """The level of the k-th test, k >= 1; over all k these add up to alpha.

    >>> level(0.05, 1)
    0.025
    """
    return alpha / (k * (k + 1))


class Bet:
    """The capital of a bet that scenario differences are above zero on average."""

    def __init__(self) -> None:
        self._logs = [0.0] * _GRID

    def add(self, difference: float) -> None:
        """One more scenario's difference, in [-1, 1]."""
        if difference:
            for i, stake in enumerate(_STAKES):
                self._logs[i] += math.log1p(stake * difference)

    @property
    def capital(self) -> float:
        """The mean over the stakes; it starts at 1."""
        top = max(self._logs)
        if top > 600:
            return math.inf
        return math.exp(top) * sum(math.exp(log - top) for log in self._logs) / _GRID


class Futility:
    """Evidence against "at least this share of the discordant pairs favour the child".

    A mixture of likelihood ratios over smaller shares: a test martingale at the boundary, and a
    supermartingale under any larger share.
    """

    def __init__(self, share: float) -> None:
        smaller = [share * (i + 0.5) / _GRID for i in range(_GRID)]
        self._ratios = [(math.log(q / share), math.log((1 - q) / (1 - share))) for q in smaller]
        """Of each smaller share to this one: the log-likelihood ratio of a win, and of a loss."""
        self.wins = 0
        self.losses = 0

    def add(self, difference: float) -> None:
        """One more scenario's difference; only its sign counts."""
        self.wins += difference > 0
        self.losses += difference < 0

    @property
    def e_value(self) -> float:
        """The evidence; it starts at 1."""
        logs = [self.wins * win + self.losses * loss for win, loss in self._ratios]
        top = max(logs)
        return math.exp(top) * sum(math.exp(log - top) for log in logs) / _GRID


@dataclass
class PairedTest:
    """One test of a child against its parent, fed scenario by scenario.

    In a removal test the child is the candidate without a patch, and the question is whether the
    removal is better; `against` then gathers the opposite evidence, that the patch earns its place.
    In a standing test the child is the words in force and the parent the original ones, and the
    burden stays on the child: without evidence it is refused.
    """

    config: GateConfig
    kind: TestKind
    k: int
    bet: Bet = field(default_factory=Bet)
    against: Bet = field(default_factory=Bet)
    differences: list[float] = field(default_factory=list)
    unscored: int = 0

    def __post_init__(self) -> None:
        self.futility = Futility(self.config.futility_share)

    @property
    def threshold(self) -> float:
        """The capital at which the test accepts."""
        return OWN_EVIDENCE if self.kind == "standing" else 1 / level(self.config.alpha, self.k)

    def add(self, difference: float | None) -> None:
        """One scenario's difference, None if it could not be scored under both."""
        if difference is None:
            self.unscored += 1
            return
        self.differences.append(difference)
        self.bet.add(difference)
        self.against.add(-difference)
        self.futility.add(difference)

    @property
    def decided(self) -> bool:
        """More scenarios would not change the verdict.

        A test with too many unscored scenarios goes on until their share has fallen; once it can no
        longer fall far enough, the test is over.
        """
        gate = self.config
        most = gate.removal_scenarios if self.kind == "removal" else gate.scenarios
        if self.unscored > UNSCORED_SHARE * most:
            return True
        if self._too_many_unscored:
            return False
        if self.bet.capital >= self.threshold:
            return True
        if self._nothing_differs:
            return True
        if self.kind == "removal":
            return self.against.capital >= OWN_EVIDENCE
        return self.futility.e_value >= self.config.futility_e

    @property
    def _nothing_differs(self) -> bool:
        """So many scenarios ended alike that hundreds more are not worth their cost."""
        discordant = self.futility.wins + self.futility.losses
        return not discordant and len(self.differences) >= ALL_ALIKE

    @property
    def _too_many_unscored(self) -> bool:
        return self.unscored > UNSCORED_SHARE * (len(self.differences) + self.unscored)

    def result(self, slots: tuple[str, ...], stopped: str = "") -> GateResult:
        """The verdict so far.

        Args:
            slots: What the test was about.
            stopped: Why it ended before it was decided, if something else ended it.
        """
        verdict, reason = self._verdict(stopped)
        # A removal is told from the patch's side: what speaks for the patch is a win.
        sign = -1.0 if self.kind == "removal" else 1.0
        wins, losses = self.futility.wins, self.futility.losses
        capital, threshold = self.bet.capital, self.threshold
        if self.kind == "removal":
            wins, losses = losses, wins
            if verdict != "accepted":
                capital, threshold = self.against.capital, OWN_EVIDENCE
        effect, low, high = mean_interval([sign * d for d in self.differences])
        return GateResult(
            test=self.kind,
            slots=slots,
            k=self.k,
            verdict=verdict,
            reason=reason,
            effect=round(effect, 6),
            low=round(low, 6),
            high=round(high, 6),
            pairs=len(self.differences),
            wins=wins,
            losses=losses,
            unscored=self.unscored,
            e_value=round(min(capital, 1e12), 4),
            threshold=round(threshold, 4),
        )

    def _verdict(self, stopped: str) -> tuple[Verdict, str]:
        if self._too_many_unscored:
            total = len(self.differences) + self.unscored
            return "undecided", f"{self.unscored} of {total} scenarios could not be scored"
        if self.bet.capital >= self.threshold:
            return "accepted", f"capital {self.bet.capital:.1f} reached {self.threshold:.0f}"
        if self._nothing_differs:
            stopped = f"all of {len(self.differences)} scenarios end alike"
        if self.kind == "removal":
            if self.against.capital >= OWN_EVIDENCE:
                return "refused", "without it the scores are worse"
            return "undecided", stopped or "neither clearly better nor worse without it"
        if self.futility.e_value >= self.config.futility_e:
            share = f"{self.config.futility_share:.0%}"
            return "refused", f"clearly less than {share} of the differing scenarios favour it"
        # Of words that must earn their place again, lacking evidence is the verdict.
        lacking = self.kind == "standing" and (not stopped or self._nothing_differs)
        return (
            "refused" if lacking else "undecided",
            stopped or "the gate scenarios are used up without clear evidence",
        )


def fewest_scenarios(config: GateConfig, k: int = 1) -> int:
    """The scenarios that the k-th test needs to accept at all, if every one of them is won."""
    bet, wanted, scenarios = Bet(), 1 / level(config.alpha, k), 0
    while bet.capital < wanted:
        bet.add(1.0)
        scenarios += 1
    return scenarios


def detectable_effect(config: GateConfig, scenarios: int, k: int = 1) -> float:
    """The smallest score gain that the k-th test finds with 80% power, in steps of 0.01.

    A normal approximation to the growth of the best bet's capital, for scenarios of one task, of
    which the gain and a further tenth differ between child and parent.
    """
    wanted = math.log(1 / level(config.alpha, k))
    if not scenarios:
        return 1.0
    for percent in range(1, 91):
        gain = percent / 100
        losses = 0.05
        wins = gain + losses
        stake = (wins - losses) / (wins + losses)
        up, down = math.log1p(stake), math.log1p(-stake)
        growth = wins * up + losses * down
        spread = math.sqrt(max(wins * up**2 + losses * down**2 - growth**2, 1e-12) * scenarios)
        if (scenarios * growth - wanted) / spread >= 0.84:
            return gain
    return 1.0
