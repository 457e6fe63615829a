"""The diagnosis names the fault that a reader named."""

from tests.labelled.__main__ import compare


def test_diagnosis_agrees_with_labels_written_by_hand():
    compared = list(compare())
    assert len(compared) >= 100
    assert sum(one.same for one in compared) / len(compared) >= 0.9
