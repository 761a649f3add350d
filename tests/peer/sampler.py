"""Every rank's list of torch.utils.data.DistributedSampler, and torch.randperm."""
import itertools

import torch
from torch.utils.data import DistributedSampler

from peer import compare

# Seeds whose low 32 bits, sign or sum with the epoch could go wrong.
SEEDS_AND_EPOCHS = [(0, 0), (0, 1), (3, 4), (4, 3), (2**32, 5), (2**63 - 7, 6)]


def cases():
    grid = itertools.product(range(24), range(1, 13), (True, False), (True, False),
                             SEEDS_AND_EPOCHS)
    for length, replicas, shuffle, drop_last, (seed, epoch) in grid:
        yield {"call": "sampler", "length": length, "replicas": replicas, "shuffle": shuffle,
               "drop_last": drop_last, "seed": seed, "epoch": epoch}
    for n, seed in itertools.product((0, 1, 2, 3, 10, 63, 64, 65, 1000, 50000), (0, 7, -1, 2**32)):
        yield {"call": "randperm", "n": n, "seed": seed}


def theirs(case):
    if case["call"] == "randperm":
        generator = torch.Generator()
        generator.manual_seed(case["seed"])
        return torch.randperm(case["n"], generator=generator).tolist()
    samplers = [DistributedSampler(range(case["length"]), case["replicas"], rank,
                                   shuffle=case["shuffle"], seed=case["seed"],
                                   drop_last=case["drop_last"])
                for rank in range(case["replicas"])]
    for sampler in samplers:
        sampler.set_epoch(case["epoch"])
    return {"size": len(samplers[0]), "total_size": samplers[0].total_size,
            "ranks": [list(sampler) for sampler in samplers]}


compare("sampler", cases(), theirs)
