import pytest
import torch

from gnn_vpa.nn import GAT, Hop, WeightedGraph
from gnn_vpa.ops import Graph


@pytest.mark.parametrize(("aggr", "expected"), [("default", 1.0), ("vpa", 3.0)])
def test_uniform_attention_over_nine_neighbours(aggr: str, expected: float) -> None:
    # Without attention vectors every weight is 1/9: equal neighbours give 9 * 1/9 = 1, and
    # divided by sqrt(9 * 1/81) = 1/3 they give 3.
    conv = GAT(1, 2, aggr, width=1, depth=1).convs[0]
    with torch.no_grad():
        conv.att_src.zero_()
        conv.att_dst.zero_()
        conv.lin.weight.fill_(1)
    everyone = torch.cartesian_prod(torch.arange(9), torch.arange(9)).t()
    out = conv(torch.ones(9, 1), Hop(WeightedGraph(Graph(everyone, 9), loops=True)), aggr)
    torch.testing.assert_close(out, torch.full((9, 1), expected))
