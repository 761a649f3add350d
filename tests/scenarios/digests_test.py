#!/usr/bin/env python3
"""Every scenario's told run has the digest and the verdict of digests.txt, in every build.

digests_test.py DDPROOF SOURCE_FOLDER [--write]. With --write the list is made anew: for when the
events of a run change on purpose.
"""
import json
import pathlib
import shlex
import subprocess
import sys

PROGRAM, SOURCE = sys.argv[1:3]
FOLDER = pathlib.Path(SOURCE, "tests", "scenarios")
LIST = FOLDER / "digests.txt"


def lines_of_runs():
    """By scenario: digest, outcome and the ranks that are to blame."""
    files = sorted(str(path) for path in FOLDER.glob("*.json"))
    done = subprocess.run([PROGRAM, "scenario", "--json", *files], stdout=subprocess.PIPE, text=True)
    runs = [json.loads(line) for line in done.stdout.splitlines()]
    if len(runs) != len(files):
        sys.exit(f"{PROGRAM} told {len(runs)} of {len(files)} scenarios, status {done.returncode}")
    return {pathlib.Path(run["file"]).stem:
            f"{run['digest']} {run['outcome']} {run['culprits']}" for run in runs}


def lines_of_list():
    lines = {}
    for line in LIST.read_text().splitlines():
        name, rest = line.split(" ", 1)
        lines[name] = rest
    return lines


found = lines_of_runs()
if sys.argv[3:] == ["--write"]:
    LIST.write_text("".join(f"{name} {line}\n" for name, line in found.items()))
    sys.exit()
listed = lines_of_list()
wrong = [name for name in sorted(found.keys() | listed.keys())
         if found.get(name) != listed.get(name)]
for name in wrong:
    print(f"{name}: {found.get(name, 'no such scenario')}, "
          f"expected {listed.get(name, 'nothing: it is not in digests.txt')}")
if wrong:
    command = shlex.join([sys.executable, __file__, PROGRAM, SOURCE, "--write"])
    sys.exit(f"{len(wrong)} of {len(found)} scenarios ended otherwise than tests/scenarios/digests.txt "
             "says. Where only some builds do, a run depends on its build: a bug. Where the events "
             f"changed on purpose, rewrite the list:\n  {command}")
