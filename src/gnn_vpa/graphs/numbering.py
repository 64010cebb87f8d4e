"""What labels were called before they were numbered from 0."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Numbering:
    """The labels that a data set's numbers stand for; None where they stand for themselves.

    No network sees it, and it is no part of the content. A model that has learned from one archive
    needs it to read the next one, whose smallest label may be another.

    Attributes:
        classes: The label of each class, where classes are numbers.
        node_labels: The label that 0 stands for, for each column of node labels.
        edge_labels: For each column of edge labels the label that its first one-hot column stands
            for, and how many one-hot columns it has. They are the last edge attributes.
        from_list: Whether the classes are those of a list of PyG's graphs. PyG numbers the classes
            of an archive from 0, whatever the archive calls them.

    Example:
        >>> Numbering(classes=(-1, 1), node_labels=(3,)).classes
        (-1, 1)
    """

    classes: tuple[int, ...] | None = None
    node_labels: tuple[int, ...] | None = None
    edge_labels: tuple[tuple[int, int], ...] | None = None
    from_list: bool = False
