"""Money that several model clients may spend together."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from seal.errors import ModelFailure


class BudgetReached(ModelFailure):
    """The next call could cost more than what is left; it was not made."""


class Budget:
    """A limit in dollars. Calls in flight count with the most they could cost.

    So the sum never passes the limit, however many threads spend at once: a call that might pass it
    is refused before it is made.

    Args:
        dollars: The limit; None: no limit, only a count of what was spent.
    """

    def __init__(self, dollars: float | None = None) -> None:
        self.dollars = dollars
        self._spent = 0.0
        self._reserved = 0.0
        self._lock = threading.Lock()

    @property
    def spent(self) -> float:
        """Dollars charged so far."""
        with self._lock:
            return self._spent

    def charge(self, dollars: float) -> None:
        """Count what an earlier process of the same run spent."""
        with self._lock:
            self._spent += dollars

    @contextmanager
    def reserve(self, most: float) -> Iterator[list[float]]:
        """Hold back `most` dollars during a call; what is put into the list is charged.

        >>> budget = Budget(1.0)
        >>> with budget.reserve(0.6) as charges:
        ...     charges.append(0.2)
        >>> budget.spent
        0.2

        Raises:
            BudgetReached: What is left does not cover `most`.
        """
        with self._lock:
            left = None if self.dollars is None else self.dollars - self._spent - self._reserved
            if left is not None and most > left:
                raise BudgetReached(
                    f"the budget of ${self.dollars:.4f} is used up: ${self._spent:.4f} is spent, "
                    f"${self._reserved:.4f} is held for calls under way, and the next call may "
                    f"cost ${most:.4f}.\n"
                    "What was done before is kept. Raise the limit with: --set dollars=AMOUNT"
                )
            self._reserved += most
        charges: list[float] = []
        try:
            yield charges
        finally:
            with self._lock:
                self._reserved -= most
                self._spent += sum(charges)
