"""PyTorch's side of ddp_benchmark: one rank, started by `ddproof run`.

    ddp_benchmark.py MODEL BATCH STEPS MEETING

The models, data, buckets and optimizer are those of ddp_benchmark.cc, and so is the line that rank 0
prints. MEETING is a file at which the ranks find each other. Gradients are views of the buckets,
which is PyTorch's faster way and ours.
"""
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

WARM_UP_STEPS = 10
FIRST_MEASURED = 3


def make_mlp(hidden):
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(784, hidden), nn.ReLU(),
        nn.Linear(hidden, hidden), nn.ReLU(),
        nn.Linear(hidden, 10))


def make_cnn():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(3136, 128), nn.ReLU(),
        nn.Linear(128, 10))


MODELS = {"mlp": lambda: make_mlp(512), "cnn": make_cnn, "wide": lambda: make_mlp(4096)}


def images(rank, batch):
    index = torch.arange(rank * batch * 784, (rank + 1) * batch * 784, dtype=torch.int64)
    values = (index * 2654435761 % 2**32).to(torch.float64) / 2**32
    return values.to(torch.float32).reshape(batch, 1, 28, 28)


def memory(key):
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(key):
                return int(line.split()[1]) * 1024


def main():
    name, batch, steps, meeting = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo", init_method="file://" + meeting, rank=rank, world_size=world)
    inputs, labels = images(rank, batch), torch.arange(batch) % 10
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = memory("VmRSS:")
    model = MODELS[name]()
    ddp = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=25, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss = nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad()
        loss(ddp(inputs), labels).backward()
        optimizer.step()

    communication, overlap = [], []
    for i in range(WARM_UP_STEPS):
        step()
        data = ddp._get_ddp_logging_data()
        if i < FIRST_MEASURED:
            continue
        communication.append(data["backward_comm_time"] / 1e9)
        overlap.append(data["backward_compute_comm_overlap_time"] / 1e9)
    dist.barrier()
    start = time.monotonic()
    for _ in range(steps):
        step()
    elapsed = (time.monotonic() - start) / steps
    if rank == 0:
        print(f"result {elapsed:.9f} {statistics.median(communication):.9f}"
              f" {statistics.median(overlap):.9f} {memory('VmHWM:') - before}", flush=True)
    dist.barrier()


main()
