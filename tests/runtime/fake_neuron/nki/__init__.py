# SPDX-License-Identifier: Apache-2.0
"""Stands for nki in tests. Where build_neff.py runs: a kernel that is called leaves a kernel.neff in NKI_ARTIFACTS_DIR, one that
the stub of libnrt runs through the emulator, and then fails, as on a host without a device. With FAKE_DEVICE the emulator computes at
once, and results are of the arguments' kind (arrays of NumPy, tensors of ../../fake_frameworks).

FAKE_MAKE_NEFF names make_stub_neff, FAKE_EMULATOR the emulator's run.py."""
import inspect
import json
import os
import subprocess
import sys
import threading

lock = threading.Lock()  # the emulator runs one program at a time
DTYPES = {"float32": 10, "float16": 7, "bfloat16": 6, "int32": 8, "int64": 12, "uint8": 3}  # numbers of nrt_dtype_t


class Kernel:
    def __init__(self, function, cores=1):
        self.function, self.cores = function, cores

    def __getitem__(self, cores):
        return Kernel(self.function, cores)

    def __call__(self, *arrays):
        program = inspect.getsourcefile(self.function)
        with open(program[:-3] + ".json", encoding="utf-8") as stream:
            manifest = json.load(stream)
        if os.environ.get("FAKE_DEVICE"):
            return self.compute(program, arrays)
        lines = [["program", "emulator", sys.executable, os.environ["FAKE_EMULATOR"], program, self.function.__name__,
                  manifest["target"]]]
        outputs = 0
        for row in manifest["args"]:
            name = row["name"]
            if row["role"] == "output":
                name = f"output_{outputs}"
                outputs += 1
            lines.append([row["role"], name, DTYPES[row["dtype"]], *row["shape"]])
        text = "".join("\t".join(map(str, line)) + "\n" for line in lines)
        neff = os.path.join(os.environ["NKI_ARTIFACTS_DIR"], "kernel.neff")
        subprocess.run([os.environ["FAKE_MAKE_NEFF"], neff], input=text, text=True, check=True,
                       stdout=subprocess.DEVNULL)
        sys.exit("no device to run it on")

    def compute(self, program, tensors):
        sys.path.append(os.path.dirname(os.path.dirname(os.environ["FAKE_EMULATOR"])))
        from nki_emulator.emulate import emulate
        from nki_emulator.manifest import read_manifest
        sys.path.pop()
        if os.environ["FAKE_DEVICE"] == "broken":
            raise RuntimeError("the device lost its clock")
        kinds = {type(t) for t in tensors}
        assert len(kinds) == 1, f"tensors of several kinds: {kinds}"
        kind = kinds.pop()
        manifest = read_manifest(program[:-3] + ".json")
        assert self.cores == manifest.lnc == int(os.environ["NEURON_LOGICAL_NC_CONFIG"])
        with open(program, encoding="utf-8") as stream:
            text = stream.read()
        for t, row in zip(tensors, manifest.inputs):
            assert str(t.dtype) == row.dtype.name, f"{row.name} is {t.dtype}"
        bits = [getattr(t, "bits", t) for t in tensors]
        with lock:
            result = emulate(text, [a.view("u2") if a.itemsize == 2 and a.dtype.kind != "f" else a for a in bits], manifest, path=program)
        made = [kind.made(a, t.name) if hasattr(kind, "made") else a for a, t in zip(result.outputs, result.output_types)]
        return made[0] if len(made) == 1 else tuple(made)


def jit(function):
    return Kernel(function)
