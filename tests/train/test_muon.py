"""Muon: every update is a matrix whose singular values are near 1, whatever the gradient's."""

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.train


@pytest.mark.parametrize("shape", [(3, 8, 20), (2, 20, 8), (1, 6, 6)])
def test_orthogonal_keeps_directions_and_evens_out_sizes(shape):
    from seal.train.muon import orthogonal

    torch.manual_seed(0)
    stack = torch.randn(shape) * torch.logspace(-2, 2, shape[0])[:, None, None]
    found = orthogonal(stack)
    assert found.shape == stack.shape
    left, sizes, right = torch.linalg.svd(stack, full_matrices=False)
    within = left.mT @ found @ right.mT
    diagonal = torch.diagonal(within, dim1=-2, dim2=-1)
    assert ((diagonal > 0.6) & (diagonal < 1.3))[sizes > 0.1 * sizes.amax(-1, keepdim=True)].all()
    assert (within - torch.diag_embed(diagonal)).abs().max() < 1e-3


def test_a_step_is_of_one_size_and_goes_downhill():
    from seal.train.muon import Muon

    torch.manual_seed(1)
    target = torch.randn(6, 10)
    matrix = torch.nn.Parameter(torch.zeros(6, 10))
    muon = Muon([matrix], rate=0.1)
    distances = []
    for _ in range(120):
        loss = (matrix - target).square().sum()
        loss.backward()
        before = matrix.detach().clone()
        muon.step()
        assert matrix.grad is None
        distances.append(loss.item())
        moved = (matrix.detach() - before).square().mean().sqrt()
        assert 0.3 < moved / (0.2 * 0.1) < 1.3
    assert distances[-1] < 0.05 * distances[0]
