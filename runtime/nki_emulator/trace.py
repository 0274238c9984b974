# SPDX-License-Identifier: Apache-2.0
"""The call trace: one record for each executed operation, in program order.

A record is plain data, ready for JSON:

    {"op": "nc_matmul", "line": 41, "engine": "tensor", "macs": 8388608,
     "operands": {"dst": OPERAND, "stationary": OPERAND, ...},       # in the order written
     "constants": {"accumulate": false, "op": "nl.add", "engine": "nisa.engine.vector", ...}}
    OPERAND = {"tensor": 4, "name": "acc", "space": "psum", "role": "local",
               "dtype": "float32", "tensor_shape": [128, 512],
               "index": [[0, 128, 1], [0, 512, 1]],
               "shape": [128, 512], "strides": [512, 1], "offset": 0}

`tensor` is a serial number of allocation, `role` is "input" for parameters and "local" else,
`index` has [start, end, step] for every dimension of the tensor (an integer i is written
[i, i + 1, 1]), or is null for an access pattern, whose text is then in `pattern`. Only
constants that the text spells out are recorded.

`normal_form` reduces a trace to what two independent evaluators of one text must agree on;
the second judge (tests/judge) makes the same from its own tracer's dump.
"""

from .memory import View
from .optable import Enum, OpName
from .dtype import DType


def operand_record(view):
    tensor = view.tensor
    index = None
    if view.index is not None:
        index = [[i, i + 1, 1] if isinstance(i, int) else list(i) for i in view.index]
    record = {"tensor": tensor.serial, "name": tensor.name, "space": tensor.space,
              "role": tensor.role,
              "dtype": tensor.dtype.name, "tensor_shape": list(tensor.shape), "index": index,
              "shape": list(view.shape), "strides": list(view.strides),
              "offset": int(view.offset)}
    if view.pattern is not None:
        record["pattern"] = view.pattern
    return record


def constant_record(value):
    if isinstance(value, (Enum, OpName, DType)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return [constant_record(v) for v in value]
    return value


def call_record(operation, arguments, line, facts):
    """Arguments are the keywords as written, without defaults."""
    record = {"op": operation.name, "line": line, "engine": facts["engine"]}
    for key in facts:
        record[key] = facts[key]
    record["operands"] = {k: operand_record(v) for k, v in arguments.items()
                          if isinstance(v, View)}
    record["operands"].update({f"{k}.vector_offset": operand_record(v.positions) for k, v in arguments.items()
                               if isinstance(v, View) and v.positions is not None})
    record["constants"] = {k: constant_record(v) for k, v in arguments.items()
                           if not isinstance(v, View) and k != "name"}
    return record


def _flat_constant(key, value):
    """A keyword as (name, number or dotted name) pairs: axis=[1, 2] is axis.0=1, axis.1=2."""
    if value is None:
        return []
    if isinstance(value, list):
        return [pair for i, v in enumerate(value) for pair in _flat_constant(f"{key}.{i}", v)]
    if isinstance(value, bool):
        return [(key, value)]
    if isinstance(value, (int, float)):
        return [(key, float(value))]
    return [(key, value)]


def normal_form(records, results):
    """[(op, ((keyword, tensor, dtype, shape, ranges), ...), ((keyword, constant), ...)), ...].

    `results` are the serial numbers of the kernel's results. Parameters go by name, results by
    `result0`, ..., every other tensor by the order of its first use.
    """
    names, tiles, normal = {serial: f"result{i}" for i, serial in enumerate(results)}, 0, []
    for record in records:
        operands = []
        for key, operand in sorted(record["operands"].items()):
            serial = operand["tensor"]
            if serial not in names:
                if operand["role"] == "input":
                    names[serial] = operand["name"]
                else:
                    names[serial], tiles = f"tile{tiles}", tiles + 1
            ranges = tuple(map(tuple, operand["index"])) if operand["index"] else \
                ("ap", operand["offset"], tuple(zip(operand["strides"], operand["shape"])))
            operands.append((key, names[serial], operand["dtype"],
                             tuple(operand["tensor_shape"]), ranges))
        constants = sorted(pair for key, value in record["constants"].items()
                           for pair in _flat_constant(key, value))
        normal.append((record["op"], tuple(operands), tuple(constants)))
    return normal
