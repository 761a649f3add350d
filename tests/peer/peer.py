"""What the peer tests share: our side as a process, and the comparison of both.

A case is a JSON object {"call": NAME, ...}; peer_answers answers it with one JSON value. A test
says what PyTorch answers to the same case, and ends with status 1 at the first difference.
"""
import json
import subprocess
import sys
import time


def ask_ours(program, cases):
    """Our answers, in order. Raises RuntimeError with its message when a call is refused."""
    text = "".join(json.dumps(case) + "\n" for case in cases)
    run = subprocess.run([program], input=text, capture_output=True, text=True)
    if run.returncode != 0:
        raise RuntimeError(run.stderr.strip())
    return [json.loads(line) for line in run.stdout.splitlines()]


def compare(subject, cases, theirs):
    """Ends the program: 0 when theirs(case) equals our answer to every case, else 1."""
    import torch

    start = time.process_time()
    cases = list(cases)
    ours = ask_ours(sys.argv[1], cases)
    if len(ours) != len(cases) or not cases:
        sys.exit(f"{subject}: {len(ours)} answers to {len(cases)} cases")
    for case, answer in zip(cases, ours):
        expected = theirs(case)
        if answer != expected:
            sys.exit(f"{subject}: {json.dumps(case)}\n  PyTorch {torch.__version__}: "
                     f"{json.dumps(expected)}\n  ddproof: {json.dumps(answer)}")
    print(f"{subject}: {len(cases)} cases, equal to PyTorch {torch.__version__} "
          f"({time.process_time() - start:.1f} s)")
    sys.exit(0)
