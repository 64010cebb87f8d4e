"""What runs on a node of a Ray cluster, as it travels there."""

from typing import Any


def actor_class() -> type:
    """Return the class that Ray runs on nodes.

    It is made here, and knows no other name of ours, so that it travels by value: a node that has
    no gnn-vpa, or another one, can say so.
    """

    class Slot:
        def __init__(self, device: str, factories: bytes) -> None:
            self.problem, self.slot = "", None  # type: str, Any
            import gc

            gc.disable()  # imports leave no garbage, and looking for it takes a fifth of them
            try:
                import torch

                if device != "cpu" and not torch.cuda.is_available():
                    self.problem = "Ray counts a GPU there, and torch finds none that it can use"
                    return
                from gnn_vpa.experiments.slot import Slot as Inner
            except ImportError as error:
                self.problem = f"gnn-vpa cannot be used there ({error}): install it on the node"
                return
            finally:
                gc.freeze()
                gc.enable()
            try:
                import pickle

                made = pickle.loads(factories)
            except Exception as error:
                self.problem = (
                    f"the models cannot be made there ({error}): let Ray carry the folder that "
                    "they are in, with --runtime-env working_dir=."
                )
                return
            self.slot = Inner(device, made)

        def place(self) -> Any:
            return self.problem, self.slot and self.slot.place()

        def train(self, job: Any, graphs: Any) -> Any:
            return self.slot.train(job, graphs)

        def news(self) -> Any:
            return self.slot.news()

    return Slot
