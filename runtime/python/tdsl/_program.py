# SPDX-License-Identifier: Apache-2.0
"""Programs of the language: `compile`, `load`, and the kernels in them as functions."""
from __future__ import annotations

import collections
import functools
import math
import os
import re
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

from . import _cache, _tools
from ._arrays import SHORT, Ready, as_array, is_of, is_plain, key_of, overlap, plain, scalar
from ._calls import Calls, fast, run_of
from ._errors import ArgumentError, CallError, CCompilerError, CompileError, CompileWarning, DtypeError, FileError, OverlapError, ShapeError, warn as warn_caller
from ._extents import complete, sizes
from ._interpreter import InterpretedKernel, heads
from ._locks import Lock
from ._table import kernels_of
from ._typical import Planned
from ._variants import OfViews, Variants

_LIST = re.compile(r"^const tdsl_kernel_info \*const (\w+)\[\] = ", re.M)


_MOST_THREADS = 1024


def usable_cpus():
    """How many CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def default_threads():
    """OMP_NUM_THREADS, or the CPUs that this process may use."""
    text = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    said = int(text) if text.isdecimal() else 0
    return min(said or usable_cpus(), _MOST_THREADS)


def threads_of(asked):
    """How many threads may compute: as asked for, or the default for None and 0."""
    if not asked:
        return default_threads()
    try:
        number = asked.__index__()
    except AttributeError:
        raise DtypeError(f"threads is a number, not {type(asked).__name__}", "threads") from None
    if not 0 < number < 1 << 31:
        raise ArgumentError(f"threads is {number}", "threads")
    return number


class Source:
    """Something that tdslc and tdsl-run take: their arguments, and the text they read from standard input. Compiled to C at
    once, so that its mistakes are raised here; the C is compiled at the first call."""

    def __init__(self, arguments, text=None, described=False, warn=False):
        self.arguments, self.text = arguments, text
        self.made_of = tuple(arguments), text
        self._lock = Lock()
        self._kernels = {}
        self.c = self.print("-o", "-", warn=warn)
        self.heads = self._read_heads() if described else None

    def print(self, *options, warn=False):
        """What tdslc prints."""
        return _tools.run(_tools.tdslc(), [*options, *([] if warn else ["-w"]), *self.arguments], self.text, warn)

    def _read_heads(self):
        import json
        try:
            return heads(json.loads(self.print("--emit=json")))
        except CompileError as error:
            if error.code != "E0401":  # a dump of a later stage: what is compiled says it
                raise
        self.heads = None
        return [(k.name, k.signature, k.dims, k.args) for k in self.kernels(1).values()]

    def kernels(self, threads):
        """Kernels by name, with OpenMP where there are threads and a loop that they share."""
        with self._lock:
            openmp = threads > 1 and "\n#pragma omp" in self.c
            if openmp not in self._kernels:
                begin, before = time.monotonic(), _cache.compiled()
                self._kernels[openmp] = {k.name: k for k in self._make(openmp)}
                self._log("compiled" if _cache.compiled() > before else "loaded", time.monotonic() - begin)
            return self._kernels[openmp]

    def _log(self, what, seconds):
        """For those who listen: logging is not imported for it."""
        logging = sys.modules.get("logging")
        if logging is not None:
            said = self.text or " ".join(self.arguments)
            logging.getLogger("tdsl").info("%s in %.0f ms: %s", what, seconds * 1e3, said if len(said) < 200 else said[:200] + "...")

    def _make(self, openmp):
        import json
        cc = _cache.compiler()
        if cc is not None:
            try:
                return kernels_of(_cache.library(self.c, cc, openmp), _LIST.search(self.c)[1])
            except CCompilerError:
                if "_Complex" not in self.c or _cache.required() or _cache.has_complex(cc):
                    raise
            _cache.warn_once("interpreter", f"{cc[0]} has no complex numbers: kernels that have them are interpreted, which is hundreds of times slower")
        found = self.heads or heads(json.loads(self.print("--emit=json")))
        # of a file with one kernel tdsl-run takes that; an equation has no other
        choose = lambda name: [f"--kernel={name}"] if len(found) > 1 else []
        return [InterpretedKernel(h, [*choose(h[0]), *self.arguments], self.text) for h in found]


class Shape:
    """What `bind` reads of an array."""

    def __init__(self, shape):
        self.shape, self.ndim = shape, len(shape)


def bind(kernel, arrays, given):
    """Values of the open dims, from the arrays (by name of argument) and from what the caller says."""
    try:
        values = {name: n.__index__() for name, n in (given or {}).items()}
    except AttributeError:
        raise DtypeError(f"{kernel.name}: dims is a dict of numbers by name, not {given!r}", "dims") from None
    for name, n in values.items():
        if not 0 <= n < 1 << 63:
            raise ShapeError(f"{kernel.name}: {name} is {n}", name)
        if name not in kernel.dims:
            raise ArgumentError(f"{kernel.name} has no open dim {name!r}", name)
    origin = {name: ("dims", name) for name in values}
    for arg in kernel.args:
        a = arrays.get(arg.name)
        if a is None:
            continue
        if a.ndim != len(arg.shape):
            raise ShapeError(f"argument {arg.name!r} of {kernel.name} has {a.ndim} dimensions, not {len(arg.shape)}", arg.name)
        for axis, (extent, wanted) in enumerate(zip(a.shape, arg.shape)):
            where = f"axis {axis} of {arg.name!r}"
            fixed = values.setdefault(wanted, extent) if isinstance(wanted, str) else wanted
            if fixed != extent:
                of = f" ({wanted} in {origin[wanted][0]})" if isinstance(wanted, str) else ""
                raise ShapeError(f"{kernel.name}: {where} is {extent}, not {fixed}{of}", arg.name)
            if isinstance(wanted, str):
                origin.setdefault(wanted, (where, arg.name))
    complete(kernel, values, origin)
    return tuple(values[name] for name in kernel.dims)


def _check_dtype(kernel, arg, a):
    if not is_of(a.dtype, arg.type):
        raise DtypeError(f"argument {arg.name!r} of {kernel.name} is {arg.type}, not {a.dtype}", arg.name)


class Report(str):
    """What the compiler says of a program. In a notebook it shows itself as HTML."""

    def __new__(cls, text, program=None):
        self = str.__new__(cls, text)
        self._program = program
        return self

    def __repr__(self):
        return str(self)

    def _repr_html_(self):
        import html
        page = self._program.report("html") if self._program else f"<pre>{html.escape(self)}</pre>"
        return f'<iframe style="width:100%;height:40em;border:0" srcdoc="{html.escape(page, quote=True)}"></iframe>'


@functools.lru_cache(maxsize=None)
def result_type(name, fields):
    """The named tuple of a kernel's results, of a name that Python takes. The same names have the same type, and its objects go to other processes."""
    import keyword
    made = collections.namedtuple(name + "_" if keyword.iskeyword(name) else name, fields, rename=True)  # type: ignore[misc]
    made.__reduce__ = lambda self: (_result, (name, fields, tuple(self)))  # type: ignore[method-assign, assignment]
    return made


def _result(name, fields, values):
    return result_type(name, fields)(*values)


_OPTIONS = "out", "dims", "threads", "comm", "mesh", "timeout"


class Kernel(Calls):
    """A kernel as a function of arrays.

    Arguments are the parameters of its head, by position or by name: arrays of the head's element types, whose shapes give the
    open extents, and numbers for scalars. `inout` arrays are updated in place. Results are returned: None, one array (a scalar of NumPy
    where it has no dimensions), or a named tuple of them.

    out: an array for the result, or a dict of arrays by name. dims: open extents that no array gives, by name.
    threads: how many may compute where that is worth it (default OMP_NUM_THREADS, else all CPUs that the process may use); results are the
    same bits for any number.
    comm: of a kernel with `shard`, a communicator of mpi4py, or of tdsl.thread_ranks: all its ranks call the kernel, each with its own blocks of the arrays, and
    get theirs of results, the same bits on any number of ranks; `cut` says which, tdsl.scatter and tdsl.gather cut and join whole arrays. mesh: ranks of each
    axis, {"r": 2, "c": 3} (default: as nearly equal as can be). timeout: seconds that a rank waits for the others (default 600).
    A kernel with a parameter of one of these names has that by its name, and the option as `out_`, `dims_` and so on.

    Raises ShapeError, DtypeError, OverlapError, ArgumentError, WorkspaceError, all of which name the argument; on ranks all fail where one does, the others with
    PeerError, and RankTimeoutError says that one did not come. Lists and other
    things that are no arrays are converted; arrays of another element type are refused.
    """

    def __init__(self, source, head):
        self._source = source
        self.__name__, self.signature, self.dims, self.args = head
        self.__doc__ = self.signature
        self._in = [a for a in self.args if a.role != "out"]
        self._out = [a for a in self.args if a.role == "out"]
        self._tuple = result_type(self.__name__, tuple(a.name for a in self._out)) if len(self._out) > 1 else None
        names = {a.name for a in self._in}
        self._renamed = {option: option + "_" for option in _OPTIONS if option in names}
        self.computed, self._planned = getattr(head, "computed", None), None
        self._variants = None
        if isinstance(source, Source) and getattr(head, "typical", None) is not None:
            self._planned = Planned(source, zip(self.dims, head.typical), self._source_of)
            self._variants = Variants(self) if not head.looks_up else None
        self._prepared, self._ready = {}, {}
        self._reads_arrays = all(a.role != "scalar" and a.shape for a in self._in)
        self._updated = tuple(k for k, a in enumerate(self._in) if a.role == "inout")
        self._take(tuple(a.name for a in self._in), 256)

    def _source_of(self, sizes):
        """This kernel planned for other sizes."""
        arguments, text = self._source.made_of
        return Source([f"--kernel={self.name}", *[f"-D{name}~{n}" for name, n in sizes.items()], *arguments], text)

    @property
    def name(self) -> str:
        """As the program calls it."""
        return self.__name__

    def __repr__(self):
        return f"<{self.signature}>"

    def __reduce__(self):
        return _kernel_again, (*self._source.made_of, self.name)

    @property
    def __signature__(self):
        from inspect import Parameter, Signature
        parameters = [Parameter(arg.name, Parameter.POSITIONAL_OR_KEYWORD) for arg in self._in]
        options = [self._renamed.get(option, option) for option in _OPTIONS]
        return Signature([*parameters, *[Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in options if name not in {a.name for a in self._in}]])

    def _sort(self, options, named):
        """What was given by the names of options, as options and arguments: parameters called so come first."""
        for option, other in self._renamed.items():
            value = options[option]
            options[option] = named.pop(other, None)
            if value is not None:
                named[option] = value
        return *options.values(), named

    def _by_name(self, given, named):
        if len(given) > len(self._in):
            raise CallError(f"{self.name} takes {len(self._in)} arguments, not {len(given)}")
        values = {arg.name: x for arg, x in zip(self._in, given)}
        known = {arg.name for arg in self._in}
        for name, x in named.items():
            if name in values or name not in known:
                raise CallError(f"{self.name} {'has argument ' + repr(name) + ' twice' if name in values else 'has no argument ' + repr(name)}")
            values[name] = x
        for arg in self._in:
            if arg.name not in values:
                raise CallError(f"{self.name}: argument {arg.name!r} is missing")
        return values

    def _read(self, arg, x):
        import numpy as np
        if arg.role == "scalar" or (arg.shape == () and arg.role == "in"):
            return scalar(x, arg.type, arg.name)
        if arg.role == "inout":
            if not isinstance(x, np.ndarray):
                raise DtypeError(f"argument {arg.name!r} of {self.name} is updated in place: an array of NumPy, not {type(x).__name__}", arg.name)
            if not x.flags.writeable:
                raise ArgumentError(f"argument {arg.name!r} of {self.name} is updated in place, and is read-only", arg.name)
        elif isinstance(x, (list, tuple, int, float, complex)) and arg.type not in SHORT:
            x = np.asarray(x, dtype=arg.dtype)
        a = as_array(x, arg.name)
        _check_dtype(self, arg, a)
        return a

    def _outputs(self, out):
        if out is None:
            return {}
        import numpy as np
        if not isinstance(out, dict):
            if len(self._out) != 1:
                raise ArgumentError(f"{self.name} has {len(self._out)} results: out is a dict of arrays by name", "out")
            out = {self._out[0].name: out}
        for name, a in out.items():
            arg = next((r for r in self._out if r.name == name), None)
            if arg is None:
                raise ArgumentError(f"{self.name} has no result {name!r}", name)
            if not isinstance(a, np.ndarray):
                raise DtypeError(f"result {name!r} of {self.name} is put into an array of NumPy, not {type(a).__name__}", name)
            _check_dtype(self, arg, a)
            if not a.flags.writeable:
                raise ArgumentError(f"result {name!r} of {self.name} is read-only", name)
        return out

    def _slow(self, /, *given, out=None, dims=None, threads=None, comm=None, mesh=None, timeout=None, **named):
        key = None
        if self._renamed:
            options = {"out": out, "dims": dims, "threads": threads, "comm": comm, "mesh": mesh, "timeout": timeout}
            out, dims, threads, comm, mesh, timeout, named = self._sort(options, named)
        if comm is not None:
            return self._call_on_ranks(given, named, out, dims, threads, comm, mesh, timeout)
        if mesh is not None or timeout is not None:
            raise ArgumentError(f"{self.name}: {'mesh' if mesh is not None else 'timeout'} without comm", "comm")
        if fast is None and out is None and dims is None and not named and self._reads_arrays:
            try:
                key = (threads, *key_of(given))
            except AttributeError:
                pass
            ready = self._ready.get(key)
            made = ready(given) if ready is not None else None
            if made is None and key is not None:
                ready = self._ready.get((*key, *[getattr(a, "strides", None) for a in given]))
                made = ready(given) if ready is not None else None
            if made is not None:
                return self._give(made)
        return self._call(key, given, named, out, dims, threads)

    def _give(self, made):
        made = [a if a.shape else a[()] for a in made]
        return None if not made else made[0] if self._tuple is None else self._tuple(*made)

    def _arguments(self, given, named):
        """Arrays by name, as they were given, and as arrays of NumPy."""
        values = self._by_name(given, named)
        return values, {arg.name: self._read(arg, values[arg.name]) for arg in self._in}

    def _call_on_ranks(self, given, named, out, dims, threads, comm, mesh, timeout):
        from . import _ranks
        results = _ranks.call(self, _ranks.Link(comm, timeout), lambda: self._arguments(given, named)[1], lambda: self._outputs(out), dims, threads, mesh)
        return None if not results else results[0] if self._tuple is None else self._tuple(*results)

    def cut(self, name: str, comm: Any, dims: dict[str, int], mesh: Any = None) -> tuple[slice, ...]:
        """Which part of argument `name` a rank of `comm` has, as slices of the whole array. dims: all open extents, by name."""
        from . import _ranks
        return _ranks.cut(self, name, comm, dims, mesh)

    def _call(self, key, given, named, out, dims, threads):
        import numpy as np
        values, arrays = self._arguments(given, named)
        outputs = self._outputs(out)
        asked, threads = threads, threads_of(threads)
        viewed = self._viewed(arrays, outputs, dims, threads)
        if viewed is None:
            owner, seen = self, ()
            kernel, extents = self._compiled({**arrays, **outputs}, dims, threads)
        else:
            owner, kernel, extents, arrays, seen, place = viewed
        size = sizes(kernel, extents)
        places, back = [], []
        for arg in kernel.args:
            if arg.role in ("in", "scalar"):
                places.append(arrays[arg.name] if arg.name in seen else plain(arrays[arg.name]))
                continue
            a = arrays.get(arg.name, outputs.get(arg.name))
            if a is None:
                places.append(np.empty([size.get(e, e) for e in arg.shape], arg.dtype))
            elif is_plain(a):
                places.append(a)
            else:
                places.append(plain(a))
                back.append((a, places[-1]))
        self._check_overlap(kernel, places)
        run = owner._run(kernel, extents, threads)
        run(places, not outputs and not self._updated)
        if key is not None and all(type(x) is np.ndarray for x in given):
            made = [(p.shape, p.dtype) for p in places[len(given):]]
            if seen:
                self._keep(self._ready, (*key, *[a.strides for a in given]), OfViews(run, made, [place.get(arg.name) for arg in self._in]))
            else:
                self._keep(self._ready, key, Ready(run, made, self._updated))
        if fast is not None and dims is None and (out is None or len(self._out) == 1):
            self._remember(kernel, extents, asked, threads, [values[arg.name] for arg in self._in], out, places, seen)
        for a, computed in back:
            a[...] = computed
        results = [outputs.get(arg.name, place if arg.shape else place[()])
                   for arg, place in zip(kernel.args, places) if arg.role == "out"]
        return None if not results else results[0] if self._tuple is None else self._tuple(*results)

    def _compiled(self, arrays, dims, threads):
        """The kernel that is compiled for a call, and its extents."""
        if self._planned is None:
            kernel = self._source.kernels(threads)[self.name]
            return kernel, bind(kernel, arrays, dims)
        extents = bind(self, arrays, dims)
        size = sizes(self, extents)
        elements = sum(math.prod(size.get(e, e) for e in arg.shape) for arg in self.args)
        return self._planned.source_for(dict(zip(self.dims, extents)), elements).kernels(threads)[self.name], extents

    def _viewed(self, arrays, outputs, dims, threads):
        """(kernel as Python has it, compiled, its extents, arrays as they lie, shapes of those that are views, how they are made) for arrays that are not in C order, or None."""
        if self._variants is None or all(a.flags.c_contiguous for a in arrays.values()):
            return None
        extents = bind(self, {**arrays, **outputs}, dims)  # what does not fit is told of what was given
        found = self._variants.find(arrays)
        if found is None:
            return None
        variant, layouts, memory, shapes, rows = found
        known = {**dict(zip(self.dims, extents)), **rows}
        as_bound = {name: Shape(shapes.get(name, a.shape)) for name, a in (*memory.items(), *outputs.items())}
        kernel, extents = variant._compiled(as_bound, {name: known[name] for name in variant.dims}, threads)
        return None if isinstance(kernel, InterpretedKernel) else (variant, kernel, extents, memory, shapes, layouts)

    def _remember(self, kernel, extents, asked, threads, given, out, places, seen):
        """Prepares calls of arguments like these in the C module, which looks at their types itself."""
        roles = {"in": "r", "inout": "w", "scalar": "s", "out": "n" if out is None else "o"}
        letters = "".join("R" if arg.name in seen else "s" if arg.role == "in" and arg.shape == () else roles[arg.role] for arg in kernel.args)
        made = [(p.shape, p.dtype) if letter == "n" else None for p, letter in zip(places, letters)]
        run = run_of(kernel, extents, threads, letters, made, self._tuple and self._tuple._make, sum(p.size for p in places))
        if run is not None:
            self._add(None, tuple(given), out, asked, None, run)

    def _run(self, kernel, extents, threads):
        key = (extents, threads)
        run = self._prepared.get(key)
        if run is None:
            run = self._keep(self._prepared, key, kernel.prepare(extents, threads))
        return run

    @staticmethod
    def _keep(table, key, value):
        if len(table) > 256:
            table.clear()
        table[key] = value
        return value

    def _check_overlap(self, kernel, places):
        for i, arg in enumerate(kernel.args):
            for j, other in enumerate(kernel.args):
                if arg.role in ("out", "inout") and i != j and overlap(places[i], places[j]):
                    raise OverlapError(f"{arg.name!r} of {kernel.name} shares memory with {other.name!r}", arg.name)


@functools.lru_cache(maxsize=256)
def _program_again(arguments, text):
    """A program that came from another process, which has told its warnings."""
    import warnings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CompileWarning)
        return Program(list(arguments), text)


def _kernel_again(arguments, text, name):
    return _program_again(arguments, text)[name]


class Program:
    """The kernels of a program: attributes of their names, or `program["name"]`. Pickled, it is the text, or the path of a file, that is compiled again."""

    def __init__(self, arguments, text=None):
        self._source = Source(arguments, text, described=True, warn=True)
        hidden = [head[0] for head in self._source.heads if hasattr(Program, head[0]) or head[0] in ("_source", "kernels")]
        for name in hidden:
            warn_caller(f"the kernel {name!r} is program[{name!r}]: a program has a member of that name", CompileWarning)
        self.kernels: dict[str, Kernel] = {head[0]: Kernel(self._source, head) for head in self._source.heads}
        self.__dict__.update({name: k for name, k in self.kernels.items() if not hasattr(Program, name) and name not in self.__dict__})

    def __getattr__(self, name: str) -> Kernel:
        try:
            return self.__dict__["kernels"][name]
        except KeyError:
            raise AttributeError(f"the program has no kernel {name!r}; it has {', '.join(self.__dict__.get('kernels', ())) or 'none'}") from None

    def __getitem__(self, name: str) -> Kernel:
        return self.kernels[name]

    def __iter__(self) -> Iterator[Kernel]:
        return iter(self.kernels.values())

    def __reduce__(self):
        return _program_again, self._source.made_of

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.kernels]

    def __repr__(self):
        return "\n".join(k.signature for k in self) or "<a program without kernels>"

    def report(self, form: str = "text") -> Any:
        """Where every value lives, what moves through memory, the order of contractions: text, or "html", or "json" as a dict."""
        import json
        if not isinstance(form, str) or form not in ("text", "html", "json"):
            also = "; the kernel is program['report']" if "report" in self.kernels else ""
            raise ArgumentError(f'report takes "text", "html" or "json", not {type(form).__name__}{also}', "form")
        text = self._source.print("--report" if form == "text" else f"--report={form}")
        return json.loads(text) if form == "json" else Report(text, self if form == "text" else None)

    def dump(self, stage: str = "nest") -> str:
        """The program at a stage or after a pass, as `tdslc --dump` prints it; `tdsl.compile` takes it back."""
        return self._source.print(f"--dump={stage}")

    @property
    def c(self) -> str:
        """The C that is compiled."""
        return self._source.c


def _bound(dims):
    try:
        return [f"-D{name}={value.__index__()}" for name, value in dims.items()]
    except AttributeError:
        raise DtypeError(f"dims are numbers, not {dims}", "dims") from None


def compile(text: str, **dims: int) -> Program:  # noqa: A001
    """The kernels of a program given as text. dims: numbers for open dims. Raises CompileError; warnings of the compiler are CompileWarning."""
    if not isinstance(text, str):
        raise DtypeError(f"tdsl.compile takes the text of a program, not {type(text).__name__}", "text")
    if "\n" not in text and text.endswith(".tdsl"):
        raise CompileError(f"{text!r} is the text of no program: tdsl.load reads files")
    return Program([*_bound(dims), "-"], text)


def load(path: str | os.PathLike[str], **dims: int) -> Program:
    """The kernels of a file, as `compile` gives them: `tdsl.load("mp2.tdsl", o=16)`. What it includes is looked for beside it."""
    path = os.fspath(path)
    if "{" in path and not os.path.exists(path):
        raise FileError(f"{path!r} is the path of no file: tdsl.compile takes the text of a program")
    return Program([*_bound(dims), os.path.abspath(path)])
