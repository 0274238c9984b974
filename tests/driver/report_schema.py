#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""report_schema.py --tdslc PATH --tree TOP: what --report=json prints of programs and examples, for C and for Trainium, follows docs/report.schema.json, and
every member that the schema has is in one of these reports."""
import argparse
import copy
import json
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE / "../support"))
import json_schema  # noqa: E402
import steps  # noqa: E402
from quick import QUICK  # noqa: E402
from steps import expect  # noqa: E402

DEVICE = ["--target=trn2", "-Do=16", "-Dv=128", "-Dn=144", "-Dx=384", "-Dm=256", "-Dk=256"]
REPORTS = [
    ("tests/programs/programs.tdsl", ["--kernel=ccsd_energy"] if QUICK else []),
    ("tests/programs/programs.tdsl", ["--kernel=dfmp2_energy", "--stop-after=nest"]),
    ("tests/programs/positions.tdsl", ["--kernel=causal"] if QUICK else []),
    ("examples/mp2/mp2.tdsl", []),
    ("examples/attention/attention.tdsl", ["-Ds=4096", "-Dt=4096"]),  # online
    ("examples/callers/smooth.tdsl", []),
    ("examples/python/cp.tdsl", []),
    ("tests/golden/check/shard.tdsl", ["--mesh", "r:2,c:3"]),
    ("tests/golden/check/shard.tdsl", ["--mesh", "q:3"]),  # refused
    ("examples/trainium/kernels.tdsl", []),
    ("examples/trainium/kernels.tdsl", DEVICE + ["--stop-after=legal"]),
    ("examples/trainium/kernels.tdsl", DEVICE + ["-o", "FOLDER/device"]),
]


def members(document):
    """Names of members, of all objects in it."""
    if isinstance(document, dict):
        return set(document).union(*map(members, document.values()))
    return set().union(*map(members, document)) if isinstance(document, list) else set()


def declared(schema):
    """Names in all `properties` of a schema."""
    if not isinstance(schema, dict):
        return set()
    named = schema.get("properties", {})
    parts = [*named.values(), *schema.get("$defs", {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return set(named).union(*map(declared, parts))


def wrong(schema, report):
    """Changes that the schema has to complain of."""
    def after(change):
        changed = copy.deepcopy(report)
        change(changed, changed["kernels"][0])
        return list(json_schema.complaints(schema, changed))
    return [after(lambda r, k: r.update(version=2)),
            after(lambda r, k: r.update(more=1)),
            after(lambda r, k: k.pop("nest")),
            after(lambda r, k: k["typical"].update(n="64")),
            after(lambda r, k: k["values"][0].update(residence="nowhere")),
            after(lambda r, k: k["nest"].append({"index": "i", "extent": "n", "tile": 1, "parallel": True, "body": [1]})),
            after(lambda r, k: k["model"]["chosen"].pop("nest")),
            after(lambda r, k: k["model"].update(chosen=None))]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--tdslc", type=pathlib.Path, required=True)
    p.add_argument("--tree", type=pathlib.Path, required=True)
    a = p.parse_args()
    schema = json.loads((a.tree / "docs/report.schema.json").read_text(encoding="utf-8"))
    seen, reports = set(), []
    with tempfile.TemporaryDirectory() as folder:
        for program, options in REPORTS:
            words = [word.replace("FOLDER", folder) for word in options]
            reports.append(json.loads(steps.run("tdslc", [a.tdslc, a.tree / program, "-w", "--report=json", *words])))
            expect(" ".join([program, *options]), list(json_schema.complaints(schema, reports[-1])), [])
            seen |= members(reports[-1])
    expect("members that no report has", sorted(declared(schema) - seen), [])
    expect("changes that are no reports", [sorted(lines) for lines in wrong(schema, reports[0])],
           [["$.version: 2 is none of [1]"],
            ["$: 'more' is not in the schema"],
            ["$.kernels[0]: no 'nest'"],
            ["$.kernels[0].typical.n: '64' is no integer"],
            [f"$.kernels[0].values[0].residence: 'nowhere' is none of {schema['$defs']['value']['properties']['residence']['enum']}"],
            ["$.kernels[0].nest[2].body[0]: 1 is no ['string', 'object']"],
            ["$.kernels[0].model.chosen: no 'nest'"],
            ["$.kernels[0].model.chosen: None is no object"]])


main()
