"""DistributedDataParallel here and in PyTorch: the same scripts, the same numbers, bit for bit.

A script says, step by step, the gradient that each rank's backward gives each parameter (none: it is
not reached), whether the step is reduced, and the wrapper's options. Numbers are multiples of what they
are divided by, so that every mean is exact and the two sides must agree to the last bit, over 50
steps of SGD with momentum.
"""
import json
import random
import sys
import tempfile

from peer import ask_ours

SEED = 1
SCRIPTS = 12  # for each world size
STEPS = 50
LR, MOMENTUM, WEIGHT_DECAY = 0.125, 0.5, 0.0625


def make_script(draw, world):
    """Options and, by rank, steps; each step has a gradient or None by parameter."""
    kind = draw.choice(["plain", "unused", "static", "accumulate", "join", "fp16"])
    if world == 1 and kind == "join":
        kind = "plain"
    unit = 12 if kind == "join" else world  # what every number of ranks that may divide it divides
    sizes = [draw.randint(1, 40) for _ in range(draw.randint(2, 6))]
    never = [kind == "static" and i > 0 and draw.random() < 0.3 for i in range(len(sizes))]

    def gradients():
        row = []
        for i in range(len(sizes)):
            skipped = never[i] or (kind == "unused" and draw.random() < 0.4)
            row.append(None if skipped else unit * draw.randint(-8, 8))
        if all(value is None for value in row):
            row[0] = unit
        return row

    steps = [[gradients() for _ in range(STEPS)] for _ in range(world)]
    if kind == "join":
        steps = [own[: draw.randint(STEPS // 2, STEPS)] for own in steps]
    return {
        "call": "data_parallel",
        "kind": kind,
        "world": world,
        "sizes": sizes,
        "bucket_cap_mb": draw.choice([25, 0.0001]),
        "divide_by_initial": draw.random() < 0.5,
        # Without reducing: two of three steps.
        "accumulate": 3 if kind == "accumulate" else 1,
        "zero_grad": kind != "unused" or draw.random() < 0.7,
        "broadcast_buffers": draw.random() < 0.7,
        "steps": steps,
        "lr": LR, "momentum": MOMENTUM, "weight_decay": WEIGHT_DECAY,
    }


def torch_rank(rank, world, scripts, rendezvous, out):
    import torch
    import torch.distributed as dist
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    class Scripted(torch.nn.Module):
        def __init__(self, sizes):
            super().__init__()
            self.parameters_ = torch.nn.ParameterList(
                torch.nn.Parameter(torch.zeros(n, dtype=torch.float32)) for n in sizes)
            self.register_buffer("mean", torch.zeros(1, dtype=torch.float32))

        def forward(self, gradients):
            self.mean.mul_(0.5).add_(float(rank + 1))
            used = [g * p.sum() for g, p in zip(gradients, self.parameters_) if g is not None]
            return sum(used)

    def run(script):
        kind = script["kind"]
        model = Scripted(script["sizes"])
        ddp = torch.nn.parallel.DistributedDataParallel(
            model, bucket_cap_mb=script["bucket_cap_mb"], gradient_as_bucket_view=False,
            broadcast_buffers=script["broadcast_buffers"],
            find_unused_parameters=kind == "unused", static_graph=kind == "static")
        if kind == "fp16":
            ddp.register_comm_hook(None, default_hooks.fp16_compress_hook)
        sgd = torch.optim.SGD(model.parameters(), lr=script["lr"], momentum=script["momentum"],
                              weight_decay=script["weight_decay"])
        record = []

        def step(index, gradients):
            reduced = index % script["accumulate"] == script["accumulate"] - 1
            if index % script["accumulate"] == 0 and script["zero_grad"]:
                sgd.zero_grad(set_to_none=True)
            if reduced:
                ddp(gradients).backward()
                sgd.step()
            else:
                with ddp.no_sync():
                    ddp(gradients).backward()
            record.append({
                "gradients": [None if p.grad is None else p.grad[-1].item()
                              for p in model.parameters_],
                "values": [p[-1].item() for p in model.parameters_],
                "mean": model.mean.item()})

        def epoch():
            for index, gradients in enumerate(script["steps"][rank]):
                step(index, gradients)

        if kind == "join":
            with ddp.join(divide_by_initial_world_size=script["divide_by_initial"]):
                epoch()
        else:
            epoch()
        return {"steps": record, "values": [p[-1].item() for p in model.parameters_]}

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + rendezvous, rank=rank, world_size=world)
    results = [run(script) for script in scripts]
    with open(f"{out}.{rank}", "w") as file:
        json.dump(results, file)
    dist.barrier()


def torch_results(world, scripts):
    import torch.multiprocessing as mp
    with tempfile.TemporaryDirectory() as folder:
        out = folder + "/out"
        mp.spawn(torch_rank, (world, scripts, folder + "/rendezvous", out), nprocs=world)
        by_rank = [json.load(open(f"{out}.{rank}")) for rank in range(world)]
    return [[by_rank[rank][i] for rank in range(world)] for i in range(len(scripts))]


def first_difference(ours, theirs):
    for rank, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        for index, (a, b) in enumerate(zip(mine["steps"], other["steps"], strict=True)):
            for what in ("gradients", "values", "mean"):
                if a[what] != b[what]:
                    return f"rank {rank} step {index}: {what} {a[what]}, PyTorch has {b[what]}"
        if mine["values"] != other["values"]:
            return f"rank {rank} at the end: values {mine['values']}, PyTorch has {other['values']}"
    return None


def main():
    print(f"data_parallel: seed {SEED}")
    kinds = {}
    for world in (1, 2, 3, 4):
        draw = random.Random(SEED * 10 + world)
        scripts = [make_script(draw, world) for _ in range(SCRIPTS)]
        theirs = torch_results(world, scripts)
        ours = ask_ours(sys.argv[1], scripts)
        for script, mine, other in zip(scripts, ours, theirs, strict=True):
            kinds[script["kind"]] = kinds.get(script["kind"], 0) + 1
            difference = first_difference(mine, other)
            if difference:
                sys.exit(f"data_parallel: {json.dumps(script)}\n  {difference}")
    drawn = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
    print(f"data_parallel: equal to PyTorch, bit for bit: {drawn}")


if __name__ == "__main__":
    main()
