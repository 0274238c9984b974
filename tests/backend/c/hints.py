#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a legal kernel says of how it is run, edited by a person in the dump, is what the C does; what makes no sense is refused.

    hints.py --tdslc PATH
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import steps  # noqa: E402

PROGRAM = """dim m ~ 3000, n ~ 3000, k ~ 64;
kernel transpose(A: f32[m, n]) -> (C: f32[n, m]) { C[j,i] = A[i,j]; }
kernel large(A: f64[4096, 64], B: f64[64, 4096]) -> (C: f64[4096, 4096]) { C[i,j] = A[i,p] * B[p,j]; }
kernel product(A: f32[m, k], B: f32[k, n]) -> (C: f32[m, n]) { C[i,j] = A[i,p] * B[p,j]; }
kernel map(A: f32[m, n], B: f32[m, n]) -> (C: f32[m, n]) { C[i,j] = A[i,j] + B[i,j]; }
kernel small(A: f32[64, 64], B: f32[64, 64]) -> (C: f32[64, 64]) { C[i,j] = A[i,p] * B[p,j]; }
kernel brief(A: f32[60, 12], B: f32[12, 64]) -> (C: f32[60, 64]) { C[i,j] = A[i,p] * B[p,j]; }
kernel wide(A: f32[64, 64, 64, 64], B: f32[64, 24]) -> (C: f32[64, 24, 64, 64]) { C[w,r,z,y] = A[w,x,y,z] * B[x,r]; }
kernel both(A: f32[4, 5, 64, 8, 64], B: f32[4, 5, 8, 64, 64], D: f32[4, 8, 5, 64]) -> (C: f32[4, 5, 64, 8, 64]) { C[b,c,l,h,p] = A[b,c,l,h,n] * B[b,c,h,p,n] * D[b,h,c,l]; }
kernel triangle(B: f64[m, n, k]) -> (E: f64) { T[i,a,j,b] = B[i,a,p] * B[j,b,p]; E = sum[i,j,a,b](T[i,a,j,b] * (2 * T[i,a,j,b] - T[i,b,j,a])); }
kernel pairs(B: f64[12, 40, 30]) -> (E: f64) { T[i,a,j,b] = B[i,a,p] * B[j,b,p]; E = sum[i,j,a,b](T[i,a,j,b] * (2 * T[i,a,j,b] - T[i,b,j,a])); }
"""
# Kernel; what its dump says, as a pattern, and what is written instead; patterns that the C has before, and then: "" is anything, None nothing.
EDITS = [
    ("transpose", r" nontemporal above 33554432", "", r", 4 \* n \* m > 33554432\);", r"tdsl_transpose_f32\(.*, 0\);"),
    ("transpose", r" nontemporal above 33554432", " nontemporal", r", 4 \* n \* m > 33554432\);", r"tdsl_transpose_f32\(.*, 1\);"),
    ("transpose", r"above 33554432", "above 100", r", 4 \* n \* m > 33554432\);", r", 4 \* n \* m > 100\);"),
    ("large", r" nontemporal", "", r"TDSL_STREAM_64\(", None),
    ("large", r" nontemporal", " nontemporal above 99", r"isa->f64_6x16s, [^;]*, 8\);", r"isa->f64_6x16s, [^;]*, 134217728 > 99 \? 8 : 0\);"),
    ("map", r" threads \S+", " threads 6", r"worth = 3.200e-05 \* \(double\)m_n;", r"worth = 6.000e\+00;"),
    ("map", r" threads \S+", " threads 0.5*min(n, 7) + 2*m*n", r"worth = 3.200e-05", r"worth = 5.000e-01 \* \(double\)tdsl_min\(n, 7\) \+ 2.000e\+00 \* \(double\)m \* \(double\)n;"),
    ("map", r" threads \S+", "", r"tdsl_run\(", None),
    ("small", r"step 6 full", "step 6 full parallel threads 3", "", r"worth = 3.000e\+00;"),
    ("triangle", r" dealt", "", r"tdsl_deal\(", None),
    ("map", r" threads \S+", r"\g<0> dealt", "", r"tdsl_deal\("),
    ("product", r" cut 6((.|\n)*?panels 6) cut", r"\1", r"tdsl_first\(&common->tdsl_cut, number\) \* 6;", r"const int64_t ic = i_2 \* 126;"),
    ("product", r" cut 6", " cut 18", r"tdsl_even\(until - from, 126, 6\)", r"tdsl_even\(until - from, 126, 18\)"),
    ("product", r"panels 6 cut", "panels 6", r"float \*TDSL_RESTRICT const A_pack = \(float \*\)\(void \*\)\(front\);", r"const A_pack = \(float \*\)\(void \*\)\(ws\);"),
    ("transpose", r" cut 16", " cut 1", r"tdsl_even\(until - from, 192, 16\)", r"tdsl_even\(until - from, 192, 1\)"),
    ("pairs", r" flat", "", r"int64_t count = 0; for \(int64_t i = 0; i < 12; \+\+i\) { count \+= tdsl_steps\(i, 12, 1\);", r"const int64_t count = tdsl_steps\(0, 12, 1\);"),
    ("brief", r" specialised", "", r"isa->f32_6x32_12_1_12_64_64_first\(&A\[[^,]*\], &B\[[^,]*\], &C\[[^,]*\]\);", r"isa->f32_6x32\(12, [^;]*, 0\);"),
    ("small", r"(kk in 0|p in 0)[^;]*? begins", r"\g<0> specialised", r"isa->f32_6x32\(64, ", r"isa->f32_6x32_64_1_64_64_64_first\(&A"),
    ("wide", r" prefetch @A(.|\n)*?reach 15((.|\n)*? begins) prefetch @B_pack2", r"\2", r"tdsl_ahead_next\(&ahead\), 16384, 16384\);", r"isa->f32_12x32s\(64, [^;]*, 0\);"),
    ("wide", r" past \$jc @A\[\$x\+1,0,0,0\]", "", r"\.at = jc \+ 63 < 64 \?", r"\.at = \(uintptr_t\)A \+ \(uintptr_t\)\(4 \* \(x \* 262144 \+"),
    ("wide", r"groups \[4 by 16, 32 by 64\]", "groups [7 by -5]", r"\.step = \{64, 256, 0\}, \.count = \{4, 32, 1\}", r"\.step = \{-20, 0, 0\}, \.count = \{7, 1, 1\}"),
    ("wide", r"lines by 4096 turn 4096 reach 15", "lines by 8 turn -3 reach 0", r"\+ 60\)", r"tdsl_ahead_next\(&ahead\), 32, -12\);"),
    ("both", r"begins prefetch @B_pack2", "begins prefetch @B_pack2", r"tdsl_ahead ahead = [^;]*;", r"tdsl_ahead_next\(&ahead\), 256, -3776\);"),  # of two panels
]
# The same, and a part of the message.
REFUSED = [
    ("map", r"( as C)", r" nontemporal\1", "a non-temporal store of what is no transpose and no product that stores lines"),
    ("transpose", r"(?=    copy)", r"    map [a in $i:128<m, b in 0..n] @C[b,a] = neg(@C[b,a])\n", "a non-temporal store of what its loop reads"),
    ("transpose", r"above 33554432", "above", "a number of bytes"),
    ("transpose", r"nontemporal above 33554432 as C", "as C nontemporal", "the line should end here"),
    ("map", r" threads \S+", " threads", "a number"),
    ("map", r" threads \S+", " threads 0.5*min(n)", "expected an open dim o, or min(o, 16), here"),
    ("map", r" threads \S+", " threads 0.5*min(n, 0)", "expected an open dim o, or min(o, 16), here"),
    ("map", r" threads \S+", " threads -1", "the threads of a loop are a number from 0 on"),
    ("map", r" threads \S+", " threads inf", "the threads of a loop are a number from 0 on"),
    ("map", r" threads \S+", " threads 0.5*8", "expected an open dim o, or min(o, 16), here"),
    ("map", r"( as C)", r" specialised\1", "only products are specialised"),
    ("product", r"( begins.*)( as C)", r"\1 specialised\2", "a specialised product whose sum and strides are no numbers, or that is cut"),
    ("wide", r"begins prefetch @B_pack2", "begins", "a prefetch that no product does, in `alloc @B_pack2"),
    ("wide", r" prefetch @A.* reach 15", "", "whose alloc here does not say what fills them next"),
    ("wide", r"begins prefetch @B_pack2", "begins prefetch @A_pack1", "whose alloc here does not say what fills them next"),
    ("wide", r"begins prefetch @B_pack2", "begins prefetch @D", "there is no buffer 'D'"),
    ("wide", r"prefetch @A\[\$x,", "prefetch @A[$x2,", "or beyond loops around"),
    ("wide", r"past \$jc", "past $x2", "or beyond loops around"),
    ("wide", r"past \$jc @A\[\$x\+1,0,0,0\]", "past $jc @B[0,0]", "what fills panels next is of one buffer"),
    ("wide", r"groups \[4 by 16, 32 by 64\]", "groups []", "groups are along one to three labels"),
    ("wide", r"groups \[4 by 16, 32 by 64\]", "groups [0 by 16]", "a prefetch without groups"),
    ("wide", r"groups \[4 by 16, 32 by 64\]", "groups [4 by 1099511627776]", "too large numbers"),
    ("wide", r"begins prefetch", "begins specialised prefetch", "or a specialised one"),
    ("map", r"( as C)", r" prefetch @A\1", "a prefetch for panels that it does not read, or whose alloc here does not say"),
    ("product", r"panels 32", "panels 32 cut", "panels are cut in no loop that threads cut"),
    ("product", r"(panels 6 cut(.|\n)*?)( +)for \$jr", r"\1\3fill [y in 0:9, z in 0:126] @A_pack2[y,z] = 0.0\n\3for $jr", "or named by more than where they lie in its iteration"),
    ("product", r" cut 6", " cut 4", "threads cut a loop where an iteration cannot be cut"),
    ("product", r" cut 6", " cut 12", "threads cut a loop where an iteration cannot be cut"),
    ("product", r" cut 6", " cut", "a number of positions"),
    ("map", r" threads \S+", r"\g<0> cut 16", "threads cut a loop where an iteration cannot be cut"),
    ("map", r" threads \S+", r"\g<0> flat", "threads share two loops as one of which"),
    ("map", r"parallel threads", "threads", "threads share a loop of form legal that is parallel, and more than a rest"),
]


def dump_of(tdslc, folder, kernel):
    program = folder / "p.tdsl"
    program.write_text(PROGRAM)
    return steps.run("dump", [tdslc, program, "-w", "--kernel=" + kernel, "--dump=legal"])


def c_of(tdslc, folder, dump):
    (folder / "d.dump").write_text(dump)
    done = subprocess.run([tdslc, folder / "d.dump", "-w", "--header=k.h", "-o", "-"], capture_output=True, text=True, timeout=60, cwd=folder)
    done.stdout = re.sub(r"\s+", " ", done.stdout)
    return done


def problem(tdslc, folder, kernel, before, after, had, has):
    """What is wrong with an edit, or None."""
    dump = dump_of(tdslc, folder, kernel)
    edited, n = re.subn(before, after, dump, count=1)
    if n == 0:
        return "the dump does not say it:\n" + dump
    if re.search(had, c_of(tdslc, folder, dump).stdout) is None:
        return f"the C has no `{had}`"
    done = c_of(tdslc, folder, edited)
    if done.returncode != 0:
        return done.stderr
    if (folder / "d.dump").read_text() != steps.run("again", [tdslc, folder / "d.dump", "-w", "--dump=legal"]):
        return "its dump is another"
    found = re.search(had if has is None else has, done.stdout)
    return None if (found is None) == (has is None) else f"`{had}` became no `{has}`"


def not_refused(tdslc, folder, kernel, before, after, message):
    edited, n = re.subn(before, after, dump_of(tdslc, folder, kernel), count=1)
    done = c_of(tdslc, folder, edited)
    return None if n == 1 and done.returncode == 1 and message in done.stderr else f"status {done.returncode}, {n} edits: {done.stderr}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tdslc", required=True)
    given = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for check, rows in ((problem, EDITS), (not_refused, REFUSED)):
            for row in rows:
                why = check(Path(given.tdslc).resolve(), Path(folder), *row)
                if why is not None:
                    failed += 1
                    print(f"FAILED {row}: {why}")
    print(f"{len(EDITS) + len(REFUSED) - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
