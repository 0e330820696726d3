"""Architecture facts of a model that tables and full-model estimates need."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ModelFacts:
    """One model.  ``hidden`` is the width that is communicated; ``layers`` counts all layers,
    ``moe_layers`` those with routed experts: none in a dense model."""

    name: str
    hidden: int
    layers: int
    moe_layers: int
    routed_experts: int
    top_k: int
    moe_intermediate: int

    @property
    def dense_layers(self) -> int:
        return self.layers - self.moe_layers

    @property
    def counted_layers(self) -> int:
        """The layers that a cut run counts: those with experts, in a dense model all."""
        return self.moe_layers or self.layers

    @property
    def tp_proxy(self) -> int:
        """Tensor-parallel volume proxy: width times layers."""
        return self.hidden * self.layers

    @property
    def ep_proxy(self) -> int:
        """Expert-parallel volume proxy: width times experts per token times MoE layers."""
        return self.hidden * self.top_k * self.moe_layers
