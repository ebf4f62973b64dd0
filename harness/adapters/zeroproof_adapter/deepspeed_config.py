"""From a case to a configuration of DeepSpeed, by the keys of its documentation alone."""

from __future__ import annotations

import math
from typing import Any

from zeroproof_adapter.cases import Case, LossScale
from zeroproof_adapter.trainer import Rejected

# Settings of `zero_optimization` that a case may choose; each must leave every result as it is.
ZERO_OPTIONS = frozenset({
    "allgather_partitions", "contiguous_gradients", "offload_optimizer", "offload_param",
    "overlap_comm", "parameter_alignment", "reduce_scatter", "round_robin_gradients",
    "stage3_allgather_sequential", "stage3_max_live_parameters", "stage3_max_reuse_distance",
    "stage3_module_granularity_threshold", "stage3_param_persistence_threshold",
    "stage3_prefetch_bucket_size", "stage3_use_all_reduce_for_fetch_params", "sub_group_size",
    "use_multi_rank_bucket_allreduce",
})  # fmt: skip

# And those that stand elsewhere in the configuration.
OPTIONS = ZERO_OPTIONS | {"communication_data_type", "grad_accum_dtype"}


def configuration(case: Case, **further: Any) -> dict[str, Any]:
    """What deepspeed.initialize() takes; `further` are keys at the top. Raises Rejected."""
    zero: dict[str, Any] = {
        "stage": case.stage,
        "reduce_bucket_size": case.bucket_elements,
        # DeepSpeed refuses odd ones.
        "allgather_bucket_size": case.bucket_elements + case.bucket_elements % 2,
        "overlap_comm": case.overlap,
    }
    if case.stage == 3:
        # The defaults are for billions of elements: no parameter of a case would be partitioned,
        # or released before it is used again.
        zero["stage3_param_persistence_threshold"] = 0
        zero["stage3_max_live_parameters"] = 0
        zero["stage3_max_reuse_distance"] = 0
        zero["stage3_prefetch_bucket_size"] = case.bucket_elements if case.prefetch else 0
    document: dict[str, Any] = {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": case.micro_steps,
        "gradient_clipping": case.clip_norm,
        "steps_per_print": 10**9,
        "zero_optimization": zero,
        # With offloading, torch's Adam instead of one that is compiled on first use.
        "zero_force_ds_cpu_optimizer": False,
        **further,
    }
    if case.precision == "bf16":
        document["bf16"] = {"enabled": True}
    if case.precision == "fp16":
        document["fp16"] = _fp16(case.loss_scale)
    for name, value in case.options.items():
        if name == "grad_accum_dtype":
            document["data_types"] = {name: value}
        elif name in ZERO_OPTIONS:
            zero[name] = value
        else:
            document[name] = value
    return document


def _fp16(scale: LossScale | None) -> dict[str, Any]:
    assert scale is not None
    if scale.factor != 2:
        raise Rejected(f"DeepSpeed's loss scale changes by a factor of 2, not {scale.factor}")
    power = math.log2(scale.initial)
    if power != int(power) or scale.minimum != int(scale.minimum) or scale.minimum < 1:
        raise Rejected("DeepSpeed's loss scale begins at a power of 2 and ends at an integer")
    return {
        "enabled": True,
        "loss_scale": 0,
        "initial_scale_power": int(power),
        "loss_scale_window": scale.growth_interval,
        "hysteresis": scale.hysteresis,
        "min_loss_scale": int(scale.minimum),
    }
