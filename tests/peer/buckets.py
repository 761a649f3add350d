"""torch.distributed._compute_bucket_assignment_by_size on drawn tables of tensors."""
import random

import torch
import torch.distributed as dist

from peer import compare

SEED = 1
CASES = 2000
TYPES = {"float16": torch.float16, "float32": torch.float32, "float64": torch.float64}


def cases():
    draw = random.Random(SEED)
    for _ in range(CASES):
        count = draw.randint(1, 12)
        # Where several types end with an open bucket, PyTorch appends them in the order of a hash
        # table, which only the sort of cases without an order hides.
        is_ordered = draw.random() < 0.5
        types = list(TYPES)[:1 if is_ordered else draw.randint(1, 3)]
        tensors = [{"elements": draw.choice([0, 1, 10, draw.randint(0, 300)]),
                    "dtype": draw.choice(types),
                    "sparse": draw.random() < 0.1} for _ in range(count)]
        limits = [draw.choice([0, 1, 40, 400, draw.randint(1, 2000), 2**63 - 1])
                  for _ in range(draw.randint(1, 3))]
        order = draw.sample(range(count), count) if is_ordered else []
        yield {"call": "buckets", "tensors": tensors, "limits": limits, "order": order}


def theirs(case):
    # PyTorch takes the tensors in the order in which it is to walk them, their indices beside, and
    # what is sparse by index.
    order = case["order"] or range(len(case["tensors"]))
    walked = [case["tensors"][i] for i in order]
    buckets, limits = dist._compute_bucket_assignment_by_size(
        [torch.empty(t["elements"], dtype=TYPES[t["dtype"]]) for t in walked], case["limits"],
        [t["sparse"] for t in case["tensors"]], case["order"])
    return {"buckets": buckets, "limits": limits}


print(f"buckets: seed {SEED}")
compare("buckets", cases(), theirs)
