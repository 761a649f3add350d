"""PyTorch's side of training_benchmark: answers requests on stdin with samples per second of CPU time.

A request is "MODEL BATCH STEPS"; the models, data and optimizer are those of models.h and
training_benchmark.cc. One thread.
"""
import sys
import time

import torch
from torch import nn


def make_mlp():
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(784, 512), nn.ReLU(),
        nn.Linear(512, 512), nn.ReLU(),
        nn.Linear(512, 10))


def make_cnn():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(3136, 128), nn.ReLU(),
        nn.Linear(128, 10))


def images(batch):
    index = torch.arange(batch * 784, dtype=torch.int64)
    values = (index * 2654435761 % 2**32).to(torch.float64) / 2**32
    return values.to(torch.float32).reshape(batch, 1, 28, 28)


class Trainer:
    def __init__(self, model, batch):
        self.model = {"mlp": make_mlp, "cnn": make_cnn}[model]()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.loss = nn.CrossEntropyLoss()
        self.images = images(batch)
        self.labels = torch.arange(batch) % 10
        self.batch = batch
        self.run(3)

    def run(self, steps):
        start = time.process_time()
        for _ in range(steps):
            self.optimizer.zero_grad()
            self.loss(self.model(self.images), self.labels).backward()
            self.optimizer.step()
        return self.batch * steps / (time.process_time() - start)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    trainers = {}
    print("ready", torch.__version__, flush=True)
    for line in sys.stdin:
        model, batch, steps = line.split()
        key = (model, int(batch))
        if key not in trainers:
            trainers[key] = Trainer(*key)
        print(trainers[key].run(int(steps)), flush=True)


main()
