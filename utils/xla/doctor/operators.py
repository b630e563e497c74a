"""What the doctor knows of operators, by their names without overload (`Call.name`)."""

from utils.xla.doctor.trace import Call

RESHAPES = {"view", "unsafe_view", "expand", "as_strided", "repeat", "zeros", "ones", "full"}
RESHAPES |= {"empty", "new_zeros", "new_ones", "new_empty", "slice_backward", "select_backward"}
RESHAPES |= {"embedding_dense_backward", "sum", "index_put", "unfold"}
"""Operators whose sizes follow from the shape of a tensor, as a rule."""
IGNORED = {"detach", "alias", "lift_fresh"}
VIEWS = {"t", "transpose", "permute", "view", "expand", "slice", "select", "unsqueeze", "squeeze"}
VIEWS |= {"propagate_xla_data", "as_strided", "split", "split_with_sizes", "unbind"}
"""Recorded again whenever a parameter has changed under its view: no branch by themselves."""
CREATE = {"zeros", "zeros_like", "ones", "full", "full_like", "empty", "empty_like"}
CREATE |= {"ones_like", "new_zeros", "to", "tensor", "scalar_tensor", "fill", "zero"}
DATA_DEPENDENT = {"nonzero", "masked_select", "unique2", "unique_dim", "unique_consecutive"}
DATA_DEPENDENT |= {"repeat_interleave", "bincount", "argwhere"}

WRITES = ("index_put", "index_put_impl_")


def data_dependent(call: Call) -> bool:
    """Whether the shape of its result, or of something in it, is decided by values."""
    by_mask = call.name in ("index", *WRITES) and any(
        str(each.dtype) == "torch.bool" for each in call.tensors[1:]
    )
    return by_mask or call.name in DATA_DEPENDENT
