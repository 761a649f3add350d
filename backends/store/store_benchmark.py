"""PyTorch's side of store_benchmark: a TCPStore under the same load. Prints calls per second.

As many clients in as many tasks, which are processes here, since threads of Python wait for each
other; each set is followed by a get of the same key.
"""
import datetime
import multiprocessing
import sys
import time

import torch.distributed as dist

TIMEOUT = datetime.timedelta(minutes=1)


def connect(port):
    return dist.TCPStore("127.0.0.1", port, None, False, TIMEOUT)


def task(port, number, clients, rounds, ready, results):
    stores = [connect(port) for _ in range(clients)]
    ready.wait()
    begin = time.monotonic()
    for call in range(rounds * clients):
        store, key = stores[call % clients], f"key {number} {call % clients}"
        store.set(key, "value")
        store.get(key)
    results.put((begin, time.monotonic()))


def main():
    tasks, clients, rounds = (int(word) for word in sys.argv[1:])
    server = dist.TCPStore("127.0.0.1", 0, None, True, TIMEOUT, False)
    ready, results = multiprocessing.Barrier(tasks), multiprocessing.Queue()
    processes = [multiprocessing.Process(target=task, args=(server.port, number, clients, rounds,
                                                            ready, results))
                 for number in range(tasks)]
    for process in processes:
        process.start()
    times = [results.get() for _ in processes]
    for process in processes:
        process.join()
    elapsed = max(end for _, end in times) - min(begin for begin, _ in times)
    print(2 * tasks * clients * rounds / elapsed)


main()
