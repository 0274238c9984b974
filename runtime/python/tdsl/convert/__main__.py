# SPDX-License-Identifier: Apache-2.0
"""`python -m tdsl.convert FILE -o OUT.tdsl`: a program from another notation."""
from __future__ import annotations

import argparse
import os
import re
import runpy
import sys
from typing import Any

from .._errors import ConversionError, Error, FileError
from . import Converted, from_einsum_list, from_jaxpr, from_onnx, from_pdaggerq

DOORS = "jaxpr", "onnx", "einsum-list", "pdaggerq"


def shaped(words: list[str]) -> list[Any]:
    """What --shape says: `3x4`, `f64[m, 4]`, `m,k`; names are open dims."""
    import jax
    scope = jax.export.SymbolicScope()
    types = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "c64": "complex64", "c128": "complex128", "bool": "bool", **{f"i{n}": f"int{n}" for n in (8, 16, 32, 64)},
             **{f"u{n}": f"uint{n}" for n in (8, 16, 32)}}
    found = []
    for word in words:
        match = re.fullmatch(r"\s*(?:(\w+)\s*\[(.*)\]|([^\[\]]*))\s*", word)
        kind, extents = (match[1] or "f32", match[2] if match[1] else match[3]) if match else ("", "")
        if kind not in types:
            raise ConversionError(f"--shape={word}: this is not of the form 3x4 or f64[m, 4]")
        text = re.sub(r"(?<=\d)\s*x\s*(?=\d)", ",", extents)
        found.append(jax.ShapeDtypeStruct(jax.export.symbolic_shape(text, scope=scope) if text.strip() else (), types[kind]))
    return found


def function(path: str, name: str, shapes: list[str], kernel: str, results: Any) -> Converted:
    """A function of a file of Python, traced by jax."""
    try:
        import jax
    except ImportError:
        raise Error("--from=jaxpr needs the package jax: pip install jax") from None
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    names = runpy.run_path(path)
    if not callable(names.get(name)):
        raise ConversionError(f"{path} has no function {name}")
    given = shaped(shapes)
    try:
        traced = jax.make_jaxpr(names[name])(*given)
    except Exception as error:  # noqa: BLE001  (whatever the function raises)
        raise ConversionError(f"jax cannot trace {name}({', '.join(str(g.str_short()) if hasattr(g, 'str_short') else f'{g.dtype}{list(g.shape)}' for g in given)}): {str(error).splitlines()[0]}") from None
    return from_jaxpr(traced, kernel, results)


def arguments() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser("python -m tdsl.convert", description="Writes a program of TDSL from another notation. What has no translation is named, and nothing is written then.")
    p.add_argument("file", metavar="FILE", help="a model.onnx, a text ('-' is standard input), or FILE.py:FUNCTION for jaxpr")
    p.add_argument("--from", dest="door", choices=DOORS, help="the notation; told from .onnx and from FILE.py:FUNCTION")
    p.add_argument("-o", metavar="OUT.tdsl", default="-", help="the program (default: standard output)")
    p.add_argument("--name", default="", help="of the kernel")
    p.add_argument("--result", action="append", metavar="NAME", help="of a result, in their order; of pdaggerq with its labels, 'R(a,b,i,j)'")
    p.add_argument("--shape", action="append", default=[], metavar="f64[m, 4]", help="jaxpr: of the next argument; names are open dims; without a type f32")
    p.add_argument("--dim", action="append", default=[], metavar="ijkl=o", help="einsum-list: the extent of these labels; pdaggerq: of a space, o=5")
    p.add_argument("--dtype", default="f64", help="einsum-list, pdaggerq: element type (default f64)")
    p.add_argument("--arrays", metavar="DIR", help="a folder for the values of parameters that come with the model, as NAME.npy")
    return p


def convert(a: argparse.Namespace) -> Converted:
    path, colon, called = a.file.rpartition(":")
    door = a.door or ("onnx" if a.file.endswith(".onnx") else "jaxpr" if colon and path.endswith(".py") else None)
    if door is None:
        raise SystemExit(arguments().error(f"--from={{{','.join(DOORS)}}} is needed for {a.file}"))  # type: ignore[func-returns-value]
    if door == "jaxpr":
        if not colon:
            raise SystemExit(arguments().error("jaxpr takes FILE.py:FUNCTION"))  # type: ignore[func-returns-value]
        return function(path, called, a.shape, a.name, a.result)
    if door == "onnx":
        return from_onnx(sys.stdin.buffer.read() if a.file == "-" else a.file, a.name, a.result)
    if a.file == "-":
        text = sys.stdin.read()
    else:
        with open(a.file, encoding="utf-8") as f:
            text = f.read()
    dims = dict(word.partition("=")[::2] for word in a.dim)
    if door == "einsum-list":
        return from_einsum_list(text, a.name, dims, a.dtype, a.result)
    return from_pdaggerq(text, (a.result or [""])[0], a.name or "residual", dims, a.dtype)


def main() -> int:
    """Exit status 1: wrong input; 2: the command line; 3: files."""
    a = arguments().parse_args()
    try:
        made = convert(a)
        if a.o == "-":
            sys.stdout.write(made.text)
        else:
            made.save(a.o)
        if a.arrays is not None:
            made.save(os.devnull, a.arrays)
        elif made.arrays:
            print(f"note: {len(made.arrays)} parameters have values in the model ({', '.join(list(made.arrays)[:4])}{', ...' if len(made.arrays) > 4 else ''}); --arrays=DIR writes them", file=sys.stderr)
        return 0
    except (OSError, FileError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    except (Error, UnicodeDecodeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
