"""The paper's models by name."""

from inspect import Parameter, signature
from typing import Any

from ._checks import checked_choice
from ._model import MODELS, Model

# The classes' defaults are the configuration that the authors released.
_VARIANTS = ("released", "printed")


def build_model(
    name: str,
    in_channels: int,
    num_classes: int,
    aggr: str = "vpa",
    variant: str = "released",
    **overrides: Any,
) -> Model:
    """Build a model by its name, with PyTorch's and PyG's default initial weights.

    ========  ===========================================  ==========================  =============
    name      layers, each of width 64                     head                        ``aggr``
    ========  ===========================================  ==========================  =============
    ``gin``   4 x ``relu(BN(MLP(h_i + aggr_j h_j)))``,     all 5 levels (input too):   sum, mean,
              MLP = Linear, BN, ReLU, Linear               pool, Linear, dropout; sum  max, vpa
    ``gcn``   5 x ``relu(W1 h_i + W2 aggr_j h_j + b)``     pool, dropout, Linear to    sum, mean,
                                                           128, ReLU, Linear           max, vpa
    ``gat``   5 x ``relu(s_i sum_j c_ij W h_j + b)``, one  as gcn                      default, vpa
              head, self-loops
    ``sgc``   ``relu(W P^K x + b)``, K = 1, self-loops     as gcn                      default, vpa
    ``deep``  gcn of 64 layers, with residuals that keep   as gcn                      as gcn
              the variance where ``branch < 1``
    ========  ===========================================  ==========================  =============

    Every model also has ``power(p)``, a sum over N neighbours times ``N^(-p)`` with any p. The same
    aggregation serves layers and readout; ``default`` (plain attention, plain
    normalisation) reads out by sum. Dropout is 0.5.

    The table is what the authors released, and what the published numbers were made with. The
    paper prints something else in two places, and ``variant="printed"`` follows it to the letter:
    SGC has K = 5; GIN has 5 layers and, as the other models, an MLP on the last layer's readout,
    with a hidden layer of 64. (It says nothing of the layers' own MLPs: they stay as released.)

    Args:
        name: As in the table, in any case.
        in_channels: Number of node features.
        num_classes: Number of classes of graphs.
        aggr: The aggregation, as in the table.
        variant: ``"released"`` or ``"printed"``.
        **overrides: Other ``width``, ``depth``, ``dropout``, ``hidden``, ``K`` or ``branch``, where
            the model has it.

    Returns:
        A module to be called as ``model(x, graph, readout)``: features ``[nodes, in_channels]``,
        an ``edge_index``, and the graph of each node, ``[nodes]``. The scores are
        ``[graphs, num_classes]``.

    Example:
        >>> import torch
        >>> model = build_model("GIN", in_channels=7, num_classes=2, aggr="vpa")
        >>> edge_index = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
        >>> model(torch.randn(5, 7), edge_index, torch.tensor([0, 0, 1, 1, 1])).shape
        torch.Size([2, 2])
        >>> build_model("sgc", 7, 2, variant="printed").K, build_model("sgc", 7, 2, K=3).K
        (5, 3)

        Three of them trained side by side, each on its own rows:

        >>> from torch.func import functional_call, stack_module_state
        >>> weights = stack_module_state([build_model("gin", 7, 2) for _ in range(3)])
        >>> graphs = torch.cat([edge_index, edge_index + 5, edge_index + 10], dim=1)
        >>> batch = torch.tensor([0, 0, 1, 1, 1, 2, 2, 3, 3, 3, 4, 4, 5, 5, 5])
        >>> functional_call(model, weights, (torch.randn(15, 7), graphs, batch)).shape
        torch.Size([6, 2])
    """
    options = all_options(name, variant, **overrides)
    made: Any = MODELS[checked_choice("name", name, list(MODELS))]
    built: Model = made(in_channels, num_classes, aggr, **options)
    return built


def all_options(name: str, variant: str = "released", **overrides: Any) -> dict[str, Any]:
    """Return all options of a model, those that nobody has said among them.

    Example:
        >>> all_options("sgc", width=32)
        {'K': 1, 'width': 32, 'dropout': 0.5, 'hidden': 128}
    """
    name = checked_choice("name", name, list(MODELS))
    model: Any = MODELS[name]
    settings = model.variants.get(checked_choice("variant", variant, _VARIANTS), {})
    options = {
        key: p.default
        for key, p in signature(model).parameters.items()
        if p.kind is Parameter.KEYWORD_ONLY
    }
    known = list(options)
    chosen = {checked_choice(f"option of {name}", k, known): v for k, v in overrides.items()}
    return {**options, **settings, **chosen}
