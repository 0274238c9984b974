# SPDX-License-Identifier: Apache-2.0
"""An emulator of NKI kernels: it runs the printed text and does not flatter it.

What it is. A kernel in the emission profile (one flat module, nki.isa operations with keywords,
exact slices) is parsed and checked against the Python subset all front ends take, then run on
NumPy arrays, every operation checked against the rules of the device. A kernel that breaks a
rule ends in an exception that names rule, operation and source line; one that does not gives
results, a call trace, memory peaks and a cost report. `emulate.emulate` is the entry point,
`run.py` the command line. The package is called nki_emulator; the name `nki` means it only
while a kernel's text is being loaded.

    errors       the rules, and an exception for each     subset, guard   the text
    dtype        element types, exact rounding            api             nki, nl, nisa
    memory       tensors, views, rules of every access    session         one run
    optable      the table of operations                  ops_*           families of operations
    machine      generations as numbers                   capacity        live ranges
    trace, cost  what was called, what it would cost      manifest, run   files and arguments

What it knows that the vendor's simulator is documented not to check: capacity of SBUF and PSUM
over live ranges, start partitions, exact slices, reads of what nothing wrote, accumulation onto
what no matmul wrote, outputs left unwritten, the subset itself, the number of instructions.

What it does not know. Activation functions are evaluated exactly, not by the device's tables.
A matmul's sum over one chunk of at most 128 is rounded once; the device rounds inside. Programs
run in order: races between engines, semaphores and queues are the vendor compiler's business.
Placement of tiles by the vendor's allocator may need more room than the live ranges. Eight-bit
floats, dynamic access, indirect access but for rows of arguments, collectives, and nl.* wrappers are refused, not emulated.
"""
