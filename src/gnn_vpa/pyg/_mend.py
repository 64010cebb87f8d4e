"""A repair of PyTorch Geometric, without which one layer's aggregation breaks another's."""

from torch_geometric.nn import MessagePassing


def mend_generated_code() -> None:
    """Let PyG write the code of a layer for all its instances, not for the first one alone.

    PyG generates ``propagate`` once for each class, and leaves the sparse product out if the first
    instance has an aggregation that cannot use it: after ``GINConv(nn, aggr=VPAggregation())``,
    every ``GINConv(nn)`` would fail on a sparse matrix. The code asks each instance in any case, so
    it may always be generated in full.
    """
    generate = MessagePassing._set_jittable_templates

    def generate_in_full(self: MessagePassing, raise_on_error: bool = False) -> None:
        fuse, self.fuse = self.fuse, self.inspector.implements("message_and_aggregate")
        try:
            generate(self, raise_on_error)
        finally:
            self.fuse = fuse

    MessagePassing._set_jittable_templates = generate_in_full
