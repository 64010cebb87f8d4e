"""The statistics of a data set, and the published ones of the paper's."""

from dataclasses import dataclass, fields

from ._rows import rows

# Averages are published to three digits, and not all are rounded alike: NCI1's 29.866 nodes are
# 122747 / 4110 = 29.86545 in its archive.
_TOLERANCE = 0.001


@dataclass(frozen=True)
class Statistics:
    """What a data set is made of.

    Attributes:
        graphs: Number of graphs.
        classes: Number of classes.
        nodes: Average number of nodes of a graph.
        edges: Average number of undirected edges of a graph: half of the directed ones.
        node_labels: Number of node labels, 0 without any.
        node_attributes: Number of node attributes, 0 without any.
        self_loops: Self-loops of all graphs that `edges` counts too, each as one edge.

    Example:
        >>> Statistics(188, 2, 17.931, 19.793, 7, 0).nodes
        17.931
    """

    graphs: int
    classes: int
    nodes: float
    edges: float
    node_labels: int
    node_attributes: int
    self_loops: int = 0

    def differences(self, published: "Statistics") -> list[str]:
        """Return what differs from the published statistics, self-loops left out of account.

        Example:
            >>> measured = Statistics(10, 2, 4.0, 5.0, 0, 0)
            >>> measured.differences(Statistics(10, 3, 4.0, 5.5, 0, 0, self_loops=5))
            ['classes']
        """
        ours, theirs = self._without_self_loops(), published._without_self_loops()
        return [
            field.name
            for field in fields(self)
            if abs(getattr(ours, field.name) - getattr(theirs, field.name)) > _TOLERANCE
        ]

    def _without_self_loops(self) -> "Statistics":
        edges = self.edges - self.self_loops / max(self.graphs, 1)
        return Statistics(
            self.graphs, self.classes, self.nodes, edges, self.node_labels, self.node_attributes
        )


def published_statistics(archive: str) -> Statistics | None:
    """Return the published statistics of an archive, or None where we know of none.

    The published edges of COLLAB count its 2837 self-loops, which our reader drops as PyG's does.

    Example:
        >>> published_statistics("COLLAB").edges
        2457.783
    """
    for row in rows("datasets"):
        if row["archive"] == archive:
            return Statistics(
                graphs=int(row["graphs"]),
                classes=int(row["classes"]),
                nodes=float(row["nodes"]),
                edges=float(row["edges"]),
                node_labels=int(row["node_labels"]),
                node_attributes=int(row["node_attributes"]),
                self_loops=int(row["self_loops"]),
            )
    return None
