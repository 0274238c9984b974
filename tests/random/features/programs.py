# SPDX-License-Identifier: Apache-2.0
"""A program of some kernels: written, compiled by tdslc and by C compilers, called; run by the interpreter and by the emulator of Trainium."""
import os
import re
import shutil
import subprocess

import numpy as np

from calls import check_library, difference, encode
from arrays import bfloat16_values, load

FLAGS = [[]] * 4 + [["--no-fuse"], ["--effort=0"], ["--one-nest"], ["--no-symmetry"], ["--no-factor"], ["--effort=3"]]
COMPILERS = {"gcc": ["gcc", "-O2", "-fopenmp"], "clang": ["clang", "-O3", "-fopenmp"]}
EMULATED = ("f32", "f16", "bf16")
SECONDS = 300
TYPICAL = [None, 8, 40, 100, 300]   # sizes that a program may give its dims


class Wrong(Exception):
    """What is wrong with a program, not with one of its kernels."""


def run(command, folder):
    """Exit status and what it prints, in a folder for what it leaves behind."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=SECONDS, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return 124, f"takes more than {SECONDS} s"
    return done.returncode, done.stdout + done.stderr


class Program:
    """Kernels in one file. What is drawn here is drawn by `draw`."""

    def __init__(self, options, draw, kernels, folder):
        self.options, self.kernels, self.folder = options, kernels, folder
        typical = {dim: draw.choice(TYPICAL) for dim in ["n", "m", "k", "s"]}
        self.flags = draw.choice(FLAGS)
        self.compilers = ["gcc"] + (["clang"] if draw.random() < options.clang and shutil.which("clang") else [])
        self.emulated = draw.random() < options.emulator
        self.head = "dim " + ", ".join(dim + (f" ~ {size}" if size else "") for dim, size in typical.items()) + ";\n"
        self.path = os.path.join(folder, "k.tdsl")
        self.calls = 0
        self.faults = {}            # of a kernel: sentences
        with open(self.path, "w", encoding="utf-8") as stream:
            stream.write(self.head + "\n".join(kernel.text() for kernel in kernels))

    def fault(self, kernel, text):
        self.faults.setdefault(kernel, []).append(text)

    def tool(self, name):
        return os.path.join(os.path.abspath(self.options.bin), name)

    def compile(self):
        """The path of the C text; None where a kernel is refused, which then is its fault."""
        target = os.path.join(self.folder, "k.c")
        status, text = run([self.tool("tdslc"), os.path.basename(self.path), "-w", "-o", target, *self.flags], self.folder)
        if status == 0:
            return target
        lines = (self.head + "\n".join(kernel.text() for kernel in self.kernels)).split("\n")
        for line, message in re.findall(r"k\.tdsl:(\d+):\d+: (error.*)", text):
            above = [re.match(r"kernel (\w+)", written) for written in lines[:int(line)]]
            name = [found.group(1) for found in above if found][-1:]
            for kernel in [kernel for kernel in self.kernels if [kernel.name] == name]:
                self.fault(kernel, f"tdslc refuses it: {message}\n{lines[int(line) - 1]}")
        if not self.faults:
            raise Wrong(f"tdslc {' '.join(self.flags)} ends with {status}: {text[:2000]}")
        return None

    def check_c(self, text):
        for name in self.compilers:
            library = os.path.join(self.folder, f"{name}.so")
            status, message = run([*COMPILERS[name], "-w", "-shared", "-fPIC", text, "-o", library, "-lm"], self.folder)
            if status:
                raise Wrong(f"{name} ends with {status}: {message[:2000]}")
            calls, faults = check_library(library, self.kernels)
            self.calls += calls
            for kernel, found in faults.items():
                for text_of in found:
                    self.fault(kernel, f"{name} {' '.join(self.flags)}: {text_of}")

    def check_tool(self, kernel, number, target):
        """By tdsl-run."""
        command = [self.tool("tdsl-run"), self.path, f"--kernel={kernel.name}", f"--target={target}", "-w"]
        for value in kernel.parameters:
            path = os.path.join(self.folder, f"{value.name}.npy")
            stored = encode(value.given[number], value.dtype)
            np.save(path, stored.view("V2") if value.dtype == "bf16" else stored)
            command.append(f"{value.name}={path}")
        for value in kernel.outputs:
            command += ["-o", f"{value.name}={self.folder}/out_{value.name}.npy"]
        status, text = run(command + [f"-D{dim}={size}" for dim, size in kernel.sets[number].items()], self.folder)
        where = f"{target}, {kernel.sets[number]}"
        if kernel.refused[number]:
            if status == 0 and kernel.refused[number].certain:
                self.fault(kernel, f"{where}: no message, though {kernel.refused[number]}")
            return
        if status:
            self.fault(kernel, f"{where}: tdsl-run ends with {status}: {text[:1000]}")
            return
        for value in kernel.outputs:
            got = load(f"{self.folder}/out_{value.name}.npy")
            got = bfloat16_values(got) if value.dtype == "bf16" else got.astype(float)
            wrong = difference(got, value.arrays[number])
            if wrong:
                self.fault(kernel, f"{where}: {value.name}{wrong}")

    def check(self, draw):
        """Fills `faults`. Raises Wrong where the whole program is at fault."""
        text = self.compile()
        if text is None:
            return
        self.check_c(text)
        for kernel in self.kernels:
            number = 0 if kernel.is_large else draw.randrange(len(kernel.sets))
            self.check_tool(kernel, number, "interp")
            is_possible = {value.dtype for value in kernel.parameters + kernel.results} <= set(EMULATED) and min(kernel.sets[number].values()) > 0
            if self.emulated and is_possible and not kernel.refused[number]:
                self.check_tool(kernel, number, "emulator")
