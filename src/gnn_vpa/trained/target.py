"""What a trained model says of a graph."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import UsageError
from ..graphs import GraphSet, TargetKind
from ..graphs.targets import MISSING

Label = str | int | float | bool


@dataclass(frozen=True)
class Target:
    """The kind of a model's outputs, and what they are called.

    Attributes:
        kind: ``"classes"``, ``"labels"`` or ``"regression"``.
        outputs: Number of outputs: one for each class, label or number.
        classes: The label of each class; empty for other kinds.
        column: What was learned of each graph.
        from_list: Whether the classes were those of a list of PyG's graphs, see `Numbering`. None
            where there are no classes, or where a model was saved without saying.

    Example:
        >>> Target("classes", 2, ("mutagenic", "safe")).names
        ['mutagenic', 'safe']
    """

    kind: TargetKind
    outputs: int
    classes: tuple[Label, ...] = ()
    column: str = "y"
    from_list: bool | None = field(default=None, compare=False)  # says nothing of a graph

    @property
    def names(self) -> list[str]:
        """What each output is called: its class, or the column with its number.

        Example:
            >>> Target("regression", 2, column="homo").names
            ['homo:0', 'homo:1']
        """
        if self.kind == "classes":
            return [str(label) for label in self.classes]
        if self.outputs == 1:
            return [self.column]
        return [f"{self.column}:{number}" for number in range(self.outputs)]

    def predictions(self, outputs: NDArray[np.floating]) -> NDArray[np.generic]:
        """Return what the model says: classes ``[G]``, labels ``[G, T]``, or numbers.

        Numbers are ``[G]`` where there is one for each graph, otherwise ``[G, T]``.

        Example:
            >>> Target("classes", 2, ("a", "b")).predictions(np.array([[0.1, 2.0], [1.0, 0.0]]))
            array(['b', 'a'], dtype='<U1')
        """
        if self.kind == "classes":
            found: NDArray[np.generic] = np.asarray(self.classes)[outputs.argmax(1)]
            return found
        if self.kind == "labels":
            return (outputs > 0).astype(np.int8)
        return outputs[:, 0] if self.outputs == 1 else outputs

    def probabilities(self, outputs: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the probability of each class, which add to 1, or of each label.

        Example:
            >>> Target("labels", 1).probabilities(np.array([[0.0]]))
            array([[0.5]])
        """
        if self.kind == "regression":
            raise UsageError("a model of numbers (regression) has no probabilities: use predict")
        scores = torch.from_numpy(outputs).double()  # shares add to 1 as scikit-learn looks at it
        share = scores.softmax(1) if self.kind == "classes" else scores.sigmoid()
        return share.numpy()

    def y_of(self, graphs: GraphSet) -> Tensor:
        """Return the targets of graphs with classes numbered as the model has them.

        Raises:
            UsageError: They are of another kind, or there is a class that the model does not know.

        Example:
            >>> from torch_geometric.data import Data
            >>> pair = torch.tensor([[0, 1], [1, 0]])
            >>> one = GraphSet.from_pyg([Data(edge_index=pair, num_nodes=2, y=5)])
            >>> Target("classes", 2, (3, 5)).y_of(one)
            tensor([1])
        """
        if graphs.kind != self.kind or (
            self.kind != "classes" and graphs.num_outputs != self.outputs
        ):
            raise UsageError(
                f"{graphs.name}: its targets are {graphs.kind} ({graphs.num_outputs}), and the "
                f"model says {self.kind} ({self.outputs})"
            )
        if self.kind != "classes":
            return graphs.y
        number = {label: place for place, label in enumerate(self.classes)}
        own = graphs.classes
        unknown = [label for label in own if label not in number]
        if unknown:
            raise UsageError(
                f"{graphs.name}: the model knows no class {unknown[0]!r}, but "
                f"{', '.join(map(repr, self.classes))}"
            )
        self.check_names(graphs, own)
        table = torch.tensor([*(number[label] for label in own), MISSING])
        return table[graphs.y]  # the last entry is that of -1

    def check_names(self, graphs: GraphSet, own: Sequence[Label]) -> None:
        """Refuse classes that may be called otherwise than the model calls them.

        PyG numbers the classes of an archive from 0. Where these numbers could be PyG's, and would
        then be other classes, nobody can tell. Of a list there may be a part of the graphs alone,
        so that its classes need not begin with 0, nor be all of the archive's. Nothing is refused
        where it is not known what the model learned from.

        Args:
            graphs: The graphs.
            own: What they call their classes: of a list those that are there; of an archive, in
                the order of their numbers, at least up to the last that is there.

        Raises:
            UsageError: It cannot be told.
        """
        if self.from_list in (None, graphs.numbering.from_list):
            return
        if self.from_list:
            may_be = all(map(_may_be_pygs, self.classes))
            differ = tuple(own) != tuple(range(len(own)))
        else:
            places = range(len(self.classes))
            may_be = set(own) != set(self.classes) and all(label in places for label in own)
            differ = may_be and any(n != self.classes[int(n)] for n in own)
        if may_be and differ:
            raise UsageError(
                f"{graphs.name}: its classes are {', '.join(map(repr, own))}, the model's "
                f"{', '.join(map(repr, self.classes))}, and PyG numbers those of an archive from "
                "0, so that they may be others: give the archive where the model was trained on "
                "one, or the true labels as y"
            )


def _may_be_pygs(label: Label) -> bool:
    """Whether PyG could have called a class of an archive that: a whole number from 0 on."""
    return isinstance(label, int | float) and label >= 0 and label % 1 == 0


def target_of(graphs: GraphSet, column: str | None = None) -> Target:
    """Return what a model that is trained on these graphs says.

    Example:
        >>> from gnn_vpa.graphs import load
        >>> target_of(load("MUTAG")).classes
        (-1, 1)
    """
    from_list = graphs.numbering.from_list if graphs.kind == "classes" else None
    return Target(graphs.kind, graphs.num_outputs, graphs.classes, column or "y", from_list)
