#!/usr/bin/env python3
"""Keeps properties/scenario/scenario.schema.json true: schema_test.py DDPROOF SOURCE_FOLDER.

The scenario files are valid; the schema knows the same keys and names as the reader, whose messages
list them; and what the schema refuses, the reader refuses too.
"""
import copy
import json
import os
import re
import subprocess
import sys
import tempfile

try:
    from jsonschema import Draft202012Validator
except ImportError:
    sys.exit("python3-jsonschema is missing; run ci/bootstrap")

PROGRAM, SOURCE = sys.argv[1:]

# A step of each kind, with the least that it needs.
STEPS = {
    "send": {"to": 1}, "recv": {"from": 0}, "compute": {"for": "1 us"}, "sleep": {"for": "1 us"},
    "sampler": {"length": 4}, "train": {"batches": [1]}, "save_checkpoint": {"path": "/c"},
    "load_checkpoint": {"path": "/c"}, "repeat": {"times": 1, "steps": []},
    "if": {"ranks": "0", "then": []}, "throw": {"text": "x"},
}
# Good values for the keys that the steps of one kind may have besides.
VALUES = {
    "dtype": "int32", "count": 4, "value": [1, 2], "expect": 3, "root": 1, "reduce": "max",
    "label": "x", "group": "tp", "timeout": "1 s", "at": "train.py:8", "tag": 7, "wait_all_ranks": True,
    "scope": "world", "work": "1 ms", "fails": "x", "batch_size": 2, "shuffle": False,
    "drop_last": True, "drop_last_batch": True, "seed": 1, "epoch": 1, "position": 0, "each": [],
    "shared": False, "expect_step": 1, "else": [], "result": 1, "local_ranks": "0-1",
    "unused_parameters": True, "join": True, "throw_on_early_termination": True,
}
WRONG = [True, -1, "zzz", [], {}, None]

failures = []


def expect(condition, what):
    if not condition:
        failures.append(what)


def refusal(document):
    """What the reader says; None when it takes the document."""
    path = os.path.join(folder, "x.json")
    with open(path, "w") as file:
        json.dump(document, file)
    done = subprocess.run([PROGRAM, "scenario", path], capture_output=True, text=True)
    return done.stderr if done.returncode == 2 else None


def with_step(step):
    return {"fact": "x", "world_size": 2, "expect": {"outcome": "passes"},
            "groups": {"tp": [0, 1]}, "programs": {"*": [step]}}


def steps_of(schema):
    return [entry["$ref"].removeprefix("#/$defs/step_")
            for entry in schema["$defs"]["step"]["oneOf"]]


def check_keys(schema, document, place, keys):
    """`keys` are what the reader allows in the object at `place`."""
    spoilt = copy.deepcopy(document)
    target = spoilt
    for key in place:
        target = target[key]
    target["zzz"] = 1
    expect(not schema.is_valid(spoilt), f"the schema takes an unknown key at {place}")
    said = refusal(spoilt) or "nothing"
    allowed = re.search(r"zzz is not known; allowed: ([a-z_, ]+)", said)
    expect(allowed and set(allowed[1].split(", ")) == set(keys),
           f"{place}: the schema has {sorted(keys)}, the reader says: {said}")


def check_names(document, place, names):
    """`names` are what the reader allows at `place`."""
    spoilt = copy.deepcopy(document)
    target = spoilt
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = "zzz"
    said = refusal(spoilt) or "nothing"
    allowed = re.search(r"allowed: (.*)", said)
    expect(allowed and set(allowed[1].split(", ")) == set(names),
           f"{place}: the schema has {sorted(names)}, the reader says: {said}")


def spoilt_documents(document, place):
    """The document with one member of the object at `place` left out, or of another type."""
    found = document
    for key in place:
        found = found[key]
    for key in found:
        for wrong in [...] + WRONG:
            spoilt = copy.deepcopy(document)
            target = spoilt
            for part in place:
                target = target[part]
            if wrong is ...:
                del target[key]
            else:
                target[key] = wrong
            yield spoilt, f"{place + (key,)} {wrong}"


def check_all():
    with open(os.path.join(SOURCE, "properties/scenario/scenario.schema.json")) as file:
        text = json.load(file)
    Draft202012Validator.check_schema(text)
    schema = Draft202012Validator(text)
    definitions = text["$defs"]

    scenarios = os.path.join(SOURCE, "tests/scenarios")
    names = sorted(name for name in os.listdir(scenarios) if name.endswith(".json"))
    expect(len(names) > 40, "the scenario files are missing")
    for name in names:
        with open(os.path.join(scenarios, name)) as file:
            for error in schema.iter_errors(json.load(file)):
                failures.append(f"{name}: {error.json_path}: {error.message[:200]}")

    full = with_step({"do": "all_reduce"})
    full.update(network={"same_node": {}}, compute={}, training={}, schedules=[{"scheduler": "random"}])
    check_keys(schema, full, (), text["properties"])
    check_keys(schema, full, ("expect",), definitions["expect"]["properties"])
    check_keys(schema, full, ("network",), definitions["network"]["properties"])
    check_keys(schema, full, ("network", "same_node"), definitions["link"]["properties"])
    check_keys(schema, full, ("compute",), schema.schema["properties"]["compute"]["properties"])
    check_keys(schema, full, ("training",), schema.schema["properties"]["training"]["properties"])
    check_names(full, ("expect", "outcome"), definitions["outcome"]["enum"])
    check_names({**full, "probes": ["zzz"]}, ("probes", 0), definitions["probe"]["enum"])
    step = ("programs", "*", 0)
    check_names(full, step + ("do",), steps_of(text))
    check_names(full, step + ("dtype",), definitions["dtype"]["enum"])
    check_names(full, step + ("reduce",),
                definitions["step_all_reduce"]["properties"]["reduce"]["enum"])
    schedulers = []
    for schedule in definitions["schedule"]["oneOf"]:
        scheduler = schedule["properties"]["scheduler"]
        for name in scheduler.get("enum", [scheduler.get("const")]):
            schedulers.append(name)
            full["schedules"] = [{"scheduler": name}]
            check_keys(schema, full, ("schedules", 0), schedule["properties"])
    check_names(full, ("schedules", 0, "scheduler"), schedulers)

    documents = []
    full.update(schedules=[{"scheduler": "pct", "runs": 1, "depth": 1, "steps": 9}], timeout="1 s",
                faults=["crash rank=0 operation=1"], checked=True, ranks_per_node=1, source="x",
                event_limit=9, timeouts_end_deadlocks=False, drawn_faults="0-1")
    placed = {key: value for key, value in full.items() if key != "ranks_per_node"}
    documents.append(({**placed, "nodes": [0, 1]}, ()))
    full["network"] = {"same_node": {"latency": "1 us", "bytes_per_second": 1}}
    full["training"] = {"momentum": 0.5, "find_unused_parameters": True}
    full["expect"].update(culprits=[0], operation="x", guarded_works=0)
    for place in ((), ("expect",), ("network", "same_node"), ("training",),
                  ("schedules", 0)):
        documents.append((full, place))
    for name in steps_of(text):
        properties = definitions["step_" + name]["properties"]
        document = with_step({"do": name, **STEPS.get(name, {})})
        expect(schema.is_valid(document), f"the schema refuses a plain {name}")
        expect(refusal(document) is None, f"the reader refuses a plain {name}: {refusal(document)}")
        check_keys(schema, document, step, properties)
        richer = {key: VALUES[key] for key in properties if key in VALUES}
        if name == "sampler":
            richer["expect"] = [0, 1]
        document["programs"]["*"][0].update(richer)
        documents.append((document, step))
    tried = 0
    for document, place in documents:
        expect(schema.is_valid(document), f"the schema refuses {document}")
        for spoilt, what in spoilt_documents(document, place):
            if schema.is_valid(spoilt):
                continue
            tried += 1
            expect(refusal(spoilt), f"{what}: only the schema refuses it: {spoilt}")
    print(f"{len(names)} files valid, {tried} spoilt scenarios refused by both")


with tempfile.TemporaryDirectory() as folder:
    check_all()
for failure in failures:
    print("FAILED", failure)
sys.exit(1 if failures else 0)
