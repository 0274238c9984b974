# SPDX-License-Identifier: Apache-2.0
"""Trace kernels with klr-lang 0.0.9; runs inside the judge's virtual environment.

    klr_trace.py REQUESTS.json      with the stub `nki` first on PYTHONPATH

REQUESTS is a list of {"folder", "module", "function", "inputs": [[name, shape, dtype], ...],
"dump": FILE}. One line of JSON is printed for each: {"ok": bool, "text": tracer's messages,
"hbm": number of HBM tensors the kernel allocates}. The dump is the tracer's JSON.

The tracer is an independent parser and partial evaluator: it unrolls the kernel and lists its
calls. It knows less of the interface than a kernel needs, so the gathered program is rewritten
where, and only where, 0.0.9 cannot follow: HBM allocations become extra arguments, negative
literals one constant, None and `name=` keywords go, tuples are spread into keyword.0,
keyword.1, ..., access patterns into the tensor and keywords that tell the pattern, enum members become one name, and tensor_scalar, which clashes with an old
built-in, is renamed. Positions stay, so messages point into the kernel's own text.
"""

import importlib
import json
import os
import subprocess
import sys
import tempfile

ROOTS = {"nl": "nki.language", "nisa": "nki.isa", "nki": "nki"}
HBM = ("hbm", "private_hbm", "shared_hbm")


def dotted(node):
    if "Name" in node:
        return node["Name"]["id"]
    if "Attribute" in node:
        base = dotted(node["Attribute"]["value"])
        return base and base + "." + node["Attribute"]["attr"]
    return None


def resolved(name):
    root, _, rest = name.partition(".")
    return ROOTS[root] + ("." + rest if rest else "") if root in ROOTS else name


PLACE = ("lineno", "col_offset", "end_lineno", "end_col_offset")
INFINITE = 1e300                        # dump.py reads it as infinity


class Rewriter:
    """Rewrites one gathered program; remembers names used and HBM tensors allocated."""

    def __init__(self, names):
        self.names, self.hbm = names, []

    def rewrite(self, node):
        if isinstance(node, list):
            return [self.rewrite(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "UnaryOp" in node and node["UnaryOp"]["op"] == "USub":
            constant = self.rewrite(node["UnaryOp"]["operand"]).get("Constant")
            if constant is not None:
                return {"Constant": dict(constant, value=-constant["value"])}
        if "Call" in node:
            call = node["Call"]
            if dotted(call["func"]) == "float":      # float('inf'), which JSON has no number for
                place = {k: call[k] for k in PLACE}
                return {"Constant": dict(place, value=INFINITE)}
            name = resolved(dotted(call["func"]) or "")
            if name == "nki.language.ndarray" and self._space(call) in HBM:
                return self._allocation(call)
            if name.startswith("nki.isa."):
                flat = [k for key in call["keywords"] for k in self._flat(key["keyword"])]
                node = {"Call": dict(call, keywords=[{"keyword": k} for k in flat])}
        if "Attribute" in node:
            node = self._attribute(node)
        return {key: self.rewrite(value) for key, value in node.items()}

    @staticmethod
    def _keywords(call):
        return {k["keyword"]["arg"]: k["keyword"]["value"] for k in call["keywords"]}

    def _space(self, call):
        buffer = self._keywords(call).get("buffer")
        return (dotted(buffer) or "").rpartition(".")[2] if buffer else ""

    def _allocation(self, call):
        """An HBM tensor of literal shape and type: the i-th extra argument."""
        keys = self._keywords(call)
        try:
            extents = [e["Constant"]["value"] for e in keys["shape"]["Tuple"]["elts"]]
            dtype = resolved(dotted(keys["dtype"])).rpartition(".")[2]
        except (KeyError, TypeError):
            raise ValueError(f"line {call['lineno']}: an HBM tensor needs a literal shape, "
                             f"dtype and buffer")
        place = {k: call[k] for k in PLACE}
        self.hbm.append((extents, dtype))
        return {"Subscript": dict(
            place, ctx="Load", value={"Name": dict(place, id="hbm_out", ctx="Load")},
            slice={"Constant": dict(place, value=len(self.hbm) - 1)})}

    def _pattern(self, key):
        """x.ap(pattern=P, offset=O) as the whole of x and keywords key.ap.pattern, key.ap.offset; None if it is none."""
        call = key["value"].get("Call")
        if call is None or "Attribute" not in call["func"] or \
                call["func"]["Attribute"]["attr"] != "ap" or call["args"]:
            return None
        given = [k["keyword"] for k in call["keywords"]]
        return [dict(key, value=call["func"]["Attribute"]["value"])] + \
            [k for g in given for k in self._flat(dict(g, arg=f"{key['arg']}.ap.{g['arg']}"))]

    def _flat(self, key):
        value = key["value"]
        pattern = self._pattern(key)
        if pattern is not None:
            return pattern
        sequence = value.get("Tuple") or value.get("List")
        if key["arg"] == "name" or ("Constant" in value and value["Constant"]["value"] is None):
            return []
        if not sequence:
            return [key]
        return [k for i, item in enumerate(sequence["elts"])
                for k in self._flat(dict(key, arg=f"{key['arg']}.{i}", value=item))]

    def _attribute(self, node):
        attribute = node["Attribute"]
        base = resolved(dotted(attribute["value"]) or "")
        if base.startswith("nki.isa.") and "Attribute" in attribute["value"]:
            inner = attribute["value"]["Attribute"]
            attribute = dict(attribute, value=inner["value"],
                             attr=inner["attr"] + "_" + attribute["attr"])
        if attribute["attr"] == "tensor_scalar":
            attribute = dict(attribute, attr="tensor_scalar_")
        node = {"Attribute": attribute}
        name = dotted(node)
        if name and name.partition(".")[0] in ROOTS:
            self.names.add(resolved(name))
        return node


def tensor(shape, dtype):
    return {"tensor": {"dtype": {"str": dtype},
                       "shape": {"tuple": [{"int": n} for n in shape]}}}


def trace(kernel, request, binary):
    """Gather, rewrite, trace one kernel; returns (ok, messages, number of HBM tensors)."""
    program = json.loads(kernel)
    rewriter = Rewriter(set(program["undefined_symbols"]))
    program["funcs"] = {name: body if name.startswith("nki.") else rewriter.rewrite(body)
                        for name, body in program["funcs"].items()}
    program["args"] = [tensor(shape, dtype) for _, shape, dtype in request["inputs"]]
    program["globals"]["hbm_out"] = {"list": [tensor(*t) for t in rewriter.hbm]}
    program["undefined_symbols"] = sorted(rewriter.names - {
        "nki.isa", "nki.language", "nki.language.ndarray", "nki.isa.engine"})
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.json")
        with open(path, "w", encoding="utf-8") as stream:
            json.dump(program, stream)
        done = subprocess.run([binary, "trace-api", path, "-d", folder], capture_output=True,
                              text=True, timeout=300)
        if done.returncode == 0:
            with open(done.stdout.strip(), encoding="utf-8") as source, \
                    open(request["dump"], "w", encoding="utf-8") as target:
                target.write(source.read())
        return done.returncode == 0, done.stderr, len(rewriter.hbm)


def main():
    from klr import Kernel
    from klr.kernel import find_klr
    binary = str(find_klr())
    with open(sys.argv[1], encoding="utf-8") as stream:
        requests = json.load(stream)
    sys.dont_write_bytecode = True
    for request in requests:
        sys.path.insert(0, request["folder"])
        try:
            module = importlib.import_module(request["module"])
            gathered = Kernel(getattr(module, request["function"])).gather()
            ok, text, count = trace(gathered, request, binary)
        except (Exception, SystemExit) as error:            # whatever it says is a refusal
            ok, text, count = False, f"{type(error).__name__}: {error}", 0
        sys.path.remove(request["folder"])
        sys.modules.pop(request["module"], None)            # another folder may have one of this name
        print(json.dumps({"ok": ok, "text": text, "hbm": count}), flush=True)


if __name__ == "__main__":
    main()
