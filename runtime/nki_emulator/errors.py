# SPDX-License-Identifier: Apache-2.0
"""The rules of the device, each with an identity, and the exceptions that name them.

One table gives every rule a short text; one exception class is made for each row, so that a
test can ask for `errors.G5` and a message can say `[G5]`. Letters: G every instruction,
M matrix engine, E vector/scalar/gpsimd engines, D data movement, P the Python subset that all
front ends accept, A the programming interface itself, H hazards and size limits of a whole
program. A RuleError always carries the rule, the operation and the line of the kernel's
source it was raised for; the text printed is `FILE:LINE: [RULE] op: message`.
"""

RULES = {
    "G1": "an on-chip operand has 1 to 128 partitions",
    "G2": "on-chip tensors have at least two dimensions",
    "G3": "live SBUF bytes per partition fit the generation",
    "G4": "live PSUM fits 8 banks of 2 KiB; one matmul result lies within one bank",
    "G5": "start partition: 65..128 at 0, 33..64 at 0 or 64, 1..32 at 0, 32, 64 or 96",
    "G6": "engines address a single partition only at 0, 32, 64 or 96",
    "G7": "engines do not move data between lanes: inputs of one instruction start together",
    "G8": "an instruction sees at most 64K elements per partition of SBUF, 4K of PSUM",
    "G9": "free sizes fit 16 bits unsigned, strides 16 bits signed, at most 3 free dimensions",
    "G10": "access patterns and reshapes keep the partition dimension",
    "G11": "index ranges are exact: 0 <= start < end <= size, step >= 1",
    "G12": "memory is written before it is read",
    "G13": "a manual address is aligned and overlaps no live tile",
    "G14": "PSUM accesses of short types start on a 4-byte boundary and write whole words of two elements",
    "G15": "outputs lie in shared_hbm, are returned, and are written in full",
    "G16": "GpSimd does not touch PSUM",
    "G17": "tensor names are unique in a kernel",
    "G18": "a one-partition operand is not broadcast over partitions",
    "M1": "matmul operands lie in SBUF, the result in PSUM",
    "M2": "matmul shapes: dst[M,N] = stationary[K,M].T @ moving[K,N], K, M <= 128, N limited",
    "M3": "a matmul result is float32 (generation 4: or bfloat16)",
    "M4": "matmul operand types: float32 and tfloat32 only among themselves",
    "M5": "integers are not matmul types",
    "M6": "tile_position and tile_size come together, in legal sizes and multiples",
    "M7": "perf_mode needs 8-bit floats on generation 3 or later",
    "M8": "all of an accumulation group goes to one region; one is open at a time in a bank",
    "M9": "an accumulation group begins by overwriting and adds to matmul results only",
    "M10": "transpose, same type: tensor engine <= 128x128 SBUF to PSUM, vector <= 32x32",
    "M11": "a onezero promise is kept by the data",
    "M12": "an identity matrix is given the type of the data",
    "E1": "tensor_tensor: equal partitions and elements, not both inputs in PSUM",
    "E2": "tensor_scalar: operands are scalars or float32 (P,1) tiles, operators of one kind",
    "E3": "scalar_tensor_tensor: equal shapes, not both in PSUM, arithmetic only",
    "E4": "activation: scale and bias are (P,1) or scalar, reduce by addition into (P,1)",
    "E5": "tensor_reduce: trailing free axes only, consistent result",
    "E6": "tensor_copy: equal partitions and elements; scalar engine from generation 3",
    "E7": "tensor_tensor_scan: inputs not both in PSUM, initial a scalar or (P,1)",
    "E8": "affine_select and iota: SBUF, at most 4 pattern dimensions, exact count",
    "E9": "select_reduce: predicate and value types, not both in PSUM, maximum only",
    "E10": "tensor_copy_predicated: unsigned predicate, equal types and shapes",
    "E11": "nc_stream_shuffle: same type, 32 mask entries, legal start",
    "E12": "a memset value has the type of the tile and fits it",
    "E13": "integers stay exact in float32 arithmetic (at most 2^24)",
    "E14": "an activation's input lies in the function's valid range",
    "E15": "a number that becomes a float of 8 bits is not beyond the largest, unless infinite",
    "D1": "dma_copy moves equal shapes between HBM and SBUF, never PSUM",
    "D2": "hardware descriptors: generation 3, no cast; engine choice only with them",
    "D3": "copies inside SBUF keep the partition count",
    "D4": "dma_transpose: known axes, result in SBUF, same type, exact shape",
    "D5": "hardware transpose: 16 rows, columns a multiple of 128, 2-byte type",
    "D6": "dma_transpose rows are multiples of 32 bytes",
    "D7": "dma_transpose reads a kernel argument, not scratch",
    "D8": "indirect access takes one kind of offset",
    "D9": "no zero-stride partition dimension of size 1",
    "D10": "a kernel's parameters are read only",
    "D11": "DMA descriptors of a program fit one queue: 2^24 - 16",
    "P1": "an expression outside the subset",
    "P2": "a statement outside the subset",
    "P3": "`is` and `in` are not in the subset",
    "P4": "no star arguments, keyword expansion, keyword-only or positional-only parameters",
    "P5": "no operators, truth values or iteration on tensors",
    "P6": "no assignment into a tile: pass dst=",
    "P7": "loops are `for NAME in range(...)` or over a tuple, without else",
    "P8": "integers fit int32, floats are finite float32; infinities are float('inf') or np.inf, as fillers alone",
    "P9": "no formatted strings",
    "P10": "range takes 1 to 3 positional arguments",
    "P11": "arguments of nki calls are given by keyword",
    "P12": "a module holds imports of nki, constants and one @nki.jit function",
    "P13": "an unknown name",
    "P14": "a module's file name is an identifier that does not begin with nki",
    "P15": "a slice of a slice",
    "A1": "a name the dialect does not have, or this emulator does not emulate",
    "A2": "an unknown keyword",
    "A3": "a missing argument",
    "A4": "an argument of the wrong kind",
    "H1": "operands of one instruction overlap only where they are equal",
    "H2": "the number of instructions is capped",
    "H4": "the HBM a kernel allocates fits what is emulated",
    "H3": "a kernel's parameters and results agree with its manifest",
    "H6": "cores share results only, allocated alike; neither uses what the other writes",
    "H5": "an element of a result is stored once; an updated argument's is read in between",
}


class RuleError(Exception):
    """A rule was broken. `rule`, `op`, `line` and `text` are for programs, str() for people."""

    rule = "?"

    def __init__(self, text, op=None, line=None, path=None):
        super().__init__(text)
        self.text, self.op, self.line, self.path = text, op, line, path

    def locate(self, op=None, line=None, path=None):
        """Fill in what the raiser did not know; what it knew stays."""
        self.op = self.op if self.op is not None else op
        self.line = self.line if self.line is not None else line
        self.path = self.path if self.path is not None else path
        return self

    def __str__(self):
        where = f"{self.path or '<kernel>'}:{self.line if self.line is not None else '?'}"
        op = f"{self.op}: " if self.op else ""
        return f"{where}: [{self.rule}] {op}{self.text}"


class FileError(Exception):
    """A file that cannot be read, parsed or written; exit code 3 of the runner."""


class UsageError(Exception):
    """A command line or manifest that does not fit the kernel; exit code 2 of the runner."""


for _rule in RULES:
    globals()[_rule] = type(_rule, (RuleError,), {"rule": _rule, "__doc__": RULES[_rule]})


def broken(rule, text, **where):
    """Raise the exception of a rule."""
    raise globals()[rule](text, **where)
