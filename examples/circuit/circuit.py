#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A random quantum circuit as a tensor network: layers of two-qubit gates on a line of qubits, and the amplitude of one outcome.

usage: circuit.py FOLDER [QUBITS [LAYERS]]

FOLDER gets gates.npy, circuit.tdsl (a kernel whose only sum is the whole network), and expected.txt, the amplitude by a direct simulation of the state."""
import random
import struct
import sys
from pathlib import Path


def random_gate(rng):
    """A random unitary of 4 x 4: Gram and Schmidt on random rows."""
    rows = []
    while len(rows) < 4:
        row = [complex(rng.gauss(0, 1), rng.gauss(0, 1)) for _ in range(4)]
        for other in rows:
            dot = sum(x.conjugate() * y for x, y in zip(other, row))
            row = [y - dot * x for x, y in zip(other, row)]
        norm = sum(abs(x) ** 2 for x in row) ** 0.5
        rows.append([x / norm for x in row])
    return rows


def simulate(qubits, gates):
    """The state after all gates, from |0...0>; qubit 0 is the most significant bit."""
    state = [0j] * 2**qubits
    state[0] = 1
    for q, gate in gates:
        low = 1 << (qubits - 2 - q)  # of the second qubit; the first is the next bit
        for k in range(len(state)):
            if k & (3 * low) == 0:
                at = [k, k + low, k + 2 * low, k + 3 * low]
                old = [state[a] for a in at]
                for a, row in zip(at, gate):
                    state[a] = sum(x * y for x, y in zip(row, old))
    return state


def write_npy(path, shape, numbers):
    head = f"{{'descr': '<c16', 'fortran_order': False, 'shape': ({', '.join(map(str, shape))},), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    body = b"".join(struct.pack("<dd", x.real, x.imag) for x in numbers)
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + body)


def network(qubits, gates, outcome):
    """Of each gate what is left of it between |0> and the outcome, and the labels of that: `q3t2` is qubit 3 behind its second gate."""
    total = [sum(q in (p, p + 1) for p, _ in gates) for q in range(qubits)]
    done = [0] * qubits
    tensors = []
    for p, gate in gates:
        pair = (p, p + 1)
        free = []  # of the four legs, new ones first: a label, or the bit that it is fixed at
        for step in (1, 0):
            for q in pair:
                at = done[q] + step
                free.append(0 if at == 0 else outcome[q] if at == total[q] else f"q{q}t{at}")
        labels = [leg for leg in free if isinstance(leg, str)]
        numbers = []
        for bits in range(2 ** len(labels)):
            digits = iter(f"{bits:0{len(labels)}b}" if labels else "")
            leg = [int(next(digits)) if isinstance(x, str) else x for x in free]
            numbers.append(gate[2 * leg[0] + leg[1]][2 * leg[2] + leg[3]])
        tensors.append((labels, numbers))
        for q in pair:
            done[q] += 1
    return tensors


def main():
    folder = Path(sys.argv[1])
    qubits = int(sys.argv[2]) if len(sys.argv) > 2 else 12
    layers = int(sys.argv[3]) if len(sys.argv) > 3 else 10
    rng = random.Random(7)
    gates = [(q, random_gate(rng)) for layer in range(layers) for q in range(layer % 2, qubits - 1, 2)]
    outcome = [rng.randrange(2) for _ in range(qubits)]
    heads, factors = [], []
    for k, (labels, numbers) in enumerate(network(qubits, gates, outcome)):
        write_npy(folder / f"G{k}.npy", [2] * len(labels), numbers)
        heads.append(f"G{k}: c128[{', '.join(['2'] * len(labels))}]")
        factors.append(f"G{k}[{','.join(labels)}]")
    (folder / "circuit.tdsl").write_text("// The amplitude of one outcome of a random circuit.\nkernel amplitude(\n    " + ",\n    ".join(heads) +
                                         "\n) -> (a: c128) {\n    a = " + "\n      * ".join(factors) + ";\n}\n")
    (folder / "values").write_text("".join(f"G{k}={folder.resolve()}/G{k}.npy\n" for k in range(len(gates))))
    a = simulate(qubits, gates)[int("".join(map(str, outcome)), 2)]
    (folder / "expected.txt").write_text(f"{a.real:.17g} {a.imag:.17g}\n")
    print(f"{qubits} qubits, {len(gates)} gates: amplitude {a:.12g} by simulation, {abs(a)**2:.6g} likely")


main()
