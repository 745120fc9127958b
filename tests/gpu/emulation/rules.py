"""The rules of CUDA that operators are checked by, by their names in ATen."""

from __future__ import annotations

# The host waits for their result, or for the size of it.
WAITS = {
    *("_local_scalar_dense", "nonzero", "masked_select", "_unique2", "unique_dim", "unique_consecutive", "bincount"),
    *("equal", "is_nonzero", "histc", "_linalg_check_errors", "_linalg_svd", "linalg_svd", "linalg_lstsq"),
    *("to_sparse_csr", "_to_sparse_csr", "cholesky_inverse"),
}

# They start no kernel.
FREE = {
    *("detach", "alias", "lift_fresh", "view", "_unsafe_view", "transpose", "t", "permute", "expand", "slice"),
    *("select", "unsqueeze", "squeeze", "diagonal", "split", "split_with_sizes", "unbind", "as_strided", "values"),
    *("reshape", "narrow", "_reshape_alias", "unflatten", "unfold", "crow_indices", "col_indices", "is_pinned"),
    *("empty", "empty_like", "empty_strided", "new_empty", "sym_size", "_local_scalar_dense"),
    *("sparse_compressed_tensor", "_sparse_compressed_tensor_unsafe"),
}

INDEXING = {"index", "index_put", "index_put_"}  # indices may be on the CPU
WITH_NUMBERS = {"_fused_adam_", "fill_", "index_put", "index_put_", "where"}  # numbers may be on the CPU
EVERYWHERE = {"record_stream"}  # operands may be anywhere
