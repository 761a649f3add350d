"""torch.distributed.TCPStore beside our store: drawn calls, and the facts in which they differ."""
import datetime
import random
import sys

import torch.distributed as dist

from peer import ask_ours, compare

SEED = 1
CASES = 300
KEYS = ["a", "b", "c"]
MAX = 2**63 - 1

# What is known to differ: the calls, PyTorch's answer to the last one, ours.
DIFFERENCES = [
    ("compare_set of a missing key, with an expected value", [["compare_set", "k", "x", "y"]],
     "x", ""),
    ("a sum beyond 64 bits", [["add", "k", MAX], ["add", "k", 1]], -MAX - 1, "refused"),
    ("add to what is no number", [["set", "k", "text"], ["add", "k", 1]], "lost", "refused"),
    ("an empty key", [["set", "", "v"]], None, "refused"),
    ("a key of 5,000 bytes", [["set", "k" * 5000, "v"]], None, "refused"),
    ("a wait for no key", [["wait", []]], None, "refused"),
]


def cases():
    """Drawn ones wait for what is there: after a wait that passed its timeout PyTorch's client may
    take the answer for that of its next call."""
    for call in (["get", "none"], ["wait", ["a", "none"]]):
        yield {"call": "store", "calls": [["set", "a", "1"], call]}
    draw = random.Random(SEED)
    for _ in range(CASES):
        present, calls = set(), []
        for _ in range(draw.randint(1, 12)):
            key = draw.choice(KEYS)
            call = draw.choice([
                ["set", key, draw.choice(["", "1", "-7", "12"])],
                ["get", key],
                ["add", "n" + key, draw.randint(-1000, 1000)],
                ["compare_set", key, "", draw.choice(["1", "2"])],
                ["delete_key", key],
                ["num_keys"],
                ["wait", [key, "n" + key]]])
            if call[0] == "delete_key":
                present.discard(key)
            elif call[0] in ("set", "add", "compare_set"):
                present.add(call[1])
            elif call[0] != "num_keys" and not present.issuperset(
                    call[1] if call[0] == "wait" else [key]):
                continue
            calls.append(call)
        yield {"call": "store", "calls": calls}


def answer(store, call):
    name, *arguments = call
    try:
        result = getattr(store, name)(*arguments)
    except RuntimeError as error:
        return "timeout" if "Timeout" in str(error) else "lost"
    return result.decode() if isinstance(result, bytes) else result


def theirs(case):
    missing = "none" in str(case["calls"])
    timeout = datetime.timedelta(seconds=1 if missing else 60)
    store = dist.TCPStore("127.0.0.1", 0, None, True, timeout, False)
    return [answer(store, call) for call in case["calls"]]


def check_differences():
    asked = [{"call": "store", "calls": calls} for _, calls, _, _ in DIFFERENCES]
    for (fact, _, expected, expected_of_ours), case, ours in zip(
            DIFFERENCES, asked, ask_ours(sys.argv[1], asked)):
        seen = theirs(case)[-1]
        if (seen, ours[-1]) != (expected, expected_of_ours):
            sys.exit(f"store: {fact}: PyTorch {seen!r}, ddproof {ours[-1]!r}; expected "
                     f"{expected!r} and {expected_of_ours!r}")


print(f"store: seed {SEED}")
check_differences()
compare("store", cases(), theirs)
