"""From FlashInfer's page table to a plan, and to arrays for a launch that was captured once."""

import numpy as np
import ptowsp

PAGE = 16
planner = ptowsp.AttentionPlanner(heads=8, group=4, lanes=132, page_size=PAGE, causal=True)

# Once: room for any step of the service. The launch reads these arrays at these addresses.
plan = planner.reserve(sequences=64, kv_length=32768, query_length=256, kv_tokens=1 << 17, query_tokens=512)
arrays = plan.flashinfer_arrays()
addresses = [array.ctypes.data for array in arrays]


def step(qo_indptr, kv_indptr, kv_last_page_len):
    """Plans a step that is given as to FlashInfer's BatchPrefillWithPagedKVCacheWrapper."""
    pages = np.diff(kv_indptr)
    kv_lengths = np.where(pages > 0, (pages - 1) * PAGE + kv_last_page_len, 0).astype(np.int32)
    plan.update(kv_lengths, np.diff(qo_indptr).astype(np.int32))
    plan.flashinfer_arrays(out=arrays)
    work = arrays.request_indices[arrays.request_indices >= 0]
    print(
        f"{len(work)} units of {plan.tile_count} tiles; merge_indptr {arrays.merge_indptr[: len(plan.merges) + 1][:5]} ..."
    )
    assert (work == plan.units["request"]).all() and (arrays.o_indptr[plan.tile_count :] == len(work)).all()


step(np.array([0, 1, 2, 3]), np.array([0, 44, 794, 951]), np.array([12, 16, 4]))  # decode: 700, 12000, 2500 tokens
step(np.array([0, 1, 130, 131]), np.array([0, 44, 53, 210]), np.array([13, 1, 5]))  # a prompt of 129 in between
assert [array.ctypes.data for array in arrays] == addresses
