# SPDX-License-Identifier: Apache-2.0
"""Reads the tracer's dump: calls in order, and the normal form to compare with an emulator.

Nothing here is shared with the emulator but the definition of the normal form (its trace.py):
[(op, ((keyword, tensor, dtype, shape, ranges), ...), ((keyword, constant), ...)), ...] with
parameters by name, results as result0, ..., other tensors as tile0, ... in order of first use.
"""

KNOWN = ("nc_matmul nc_transpose tensor_tensor tensor_scalar scalar_tensor_tensor activation "
         "activation_reduce reciprocal tensor_copy tensor_copy_predicated select_reduce "
         "tensor_reduce tensor_partition_reduce tensor_tensor_scan memset iota affine_select "
         "nc_stream_shuffle dma_copy dma_transpose").split()

INFINITE = 1e300                        # what klr_trace.py writes for an infinity


class Access:
    """One operand: its tensor's name, shape, type, place, and a range for each dimension."""

    def __init__(self, value, hbm_names):
        body = value["access"]["a"]
        tensor = body["simple"] if "simple" in body else body["basic"]["tensor"]
        shape = tensor["shape"]
        self.name, self.dtype = tensor["name"], tensor["dtype"]
        self.shape = (shape["parDim"], *shape["freeDims"])
        self.space = "psum" if tensor["address"]["memory"] == "pmem" else \
            "hbm" if self.name in hbm_names else "sbuf"
        self.ranges, self.dropped, self.pattern = [], [], None
        if "simple" in body:
            self.ranges = [(0, n, 1) for n in self.shape]
        else:
            for at, index in enumerate(body["basic"]["indexes"]):
                if "coord" in index:
                    n = index["coord"]["e"]
                    self.ranges.append((n, n + 1, 1))
                    self.dropped.append(at)
                else:
                    start, (end, step) = index["slice"]["slice"]
                    self.ranges.append((start, end, step))

    @property
    def slices(self):
        return tuple(slice(*r) for r in self.ranges)


class Call:
    def __init__(self, statement, hbm_names):
        call = statement["assign"]["e"]["call"]
        self.op = call["f"].rpartition(".")[2]
        self.op = "tensor_scalar" if self.op == "tensor_scalar_" else self.op
        if not call["f"].startswith("nki.isa.") or call["args"]:
            raise ValueError(f"a call of {call['f']} with positional arguments")
        self.operands, self.constants = {}, {}
        for key, value in call["kwargs"]:
            if "access" in value:
                self.operands[key] = Access(value, hbm_names)
            elif "bool" in value:
                self.constants[key] = bool(value["bool"]["value"])
            elif "int" in value or "float" in value:
                number = float((value.get("int") or value.get("float"))["value"])
                self.constants[key] = number if abs(number) < INFINITE else number * INFINITE
            else:
                self.constants[key] = value["var"]["x"]
        for key, access in self.operands.items():
            self._take_pattern(key, access)

    def _take_pattern(self, key, access):
        """KEY.ap.offset and KEY.ap.pattern.I.0 (stride), .1 (count): the operand is a pattern over the whole tensor."""
        words = {k[len(key) + 4:]: int(self.constants.pop(k)) for k in list(self.constants)
                 if k.startswith(key + ".ap.")}
        if words:
            offset = words.pop("offset", 0)
            pairs = tuple((words.pop(f"pattern.{i}.0"), words.pop(f"pattern.{i}.1"))
                          for i in range(len(words) // 2))
            if words or not pairs:
                raise ValueError(f"an access pattern with {sorted(words)}")
            access.pattern = (offset, pairs)


def calls_of(dump, hbm_count):
    """(calls, names of results in return order)."""
    names = {t["name"] for t in dump["inputs"]} | {f"t.{i + 1}" for i in range(hbm_count)}
    calls = [Call(s, names) for s in dump["body"]
             if "assign" in s and "call" in s["assign"]["e"]]
    return calls, [t["name"] for t in dump["outputs"]]


def _constant(value):
    if isinstance(value, str):
        for long, short in (("nki.language.", "nl."), ("nki.isa.", "nisa.")):
            if value.startswith(long):
                return short + value[len(long):].replace("_", ".", 1) if short == "nisa." \
                    else short + value[len(long):]
    return value


def normal_form(calls, inputs, results):
    names = {name: f"result{i}" for i, name in enumerate(results)}
    names.update((name, name) for name in inputs)
    tiles, normal = 0, []
    for call in calls:
        operands = []
        for key, access in sorted(call.operands.items()):
            if access.name not in names:
                names[access.name], tiles = f"tile{tiles}", tiles + 1
            operands.append((key, names[access.name], access.dtype, access.shape,
                             tuple(access.ranges) if access.pattern is None
                             else ("ap", *access.pattern)))
        constants = sorted((k, _constant(v)) for k, v in call.constants.items())
        normal.append((call.op, tuple(operands), tuple(constants)))
    return normal


def difference(ours, theirs):
    """None if two normal forms are equal, else a sentence about the first difference."""
    def spelled(call):
        op, operands, constants = call
        return (op, operands, tuple((k, v.replace(".", "_") if isinstance(v, str) else v)
                                    for k, v in constants))
    for at, (a, b) in enumerate(zip(ours, theirs)):
        if spelled(a) != spelled(b):
            return f"call {at}: the emulator has {a}, the judge has {b}"
    if len(ours) != len(theirs):
        return f"the emulator has {len(ours)} calls, the judge {len(theirs)}"
    return None
