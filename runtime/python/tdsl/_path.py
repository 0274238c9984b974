# SPDX-License-Identifier: Apache-2.0
"""Orders of contraction: `path`."""
from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

from . import _equation, _tools
from ._errors import ArgumentError


class Path:
    """An order of contraction, and what the compiler says of it.

    path: pairs of positions in the current list of operands, which are removed, the result going to the end; sliced: labels that
    become outer loops under a memory limit; multiply_adds: of all steps (an int); largest: elements of the largest tensor;
    proved: whether no order is cheaper; interrupted: whether Ctrl-C ended the search, and this is the best until then. `data` has all
    that `--emit=path --report=json` prints. In a notebook it shows its report.
    """

    def __init__(self, data: dict[str, Any], interrupted: bool = False, of: tuple[str, ...] = (), options: tuple[str, ...] = ()) -> None:
        self.data, self.interrupted, self._of, self._options = data, interrupted, of, options
        self.path: list[tuple[int, ...]] = [tuple(step) for step in data["path"]]
        self.sliced: list[str] = list(data["sliced"])
        self.multiply_adds, self.largest = int(data["multiply_adds"]), int(data["largest"])
        self.proved: bool = data["proved"]

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        return iter(self.path)

    def __len__(self) -> int:
        return len(self.path)

    def __getitem__(self, k: int) -> tuple[int, ...]:
        return self.path[k]

    def __repr__(self) -> str:
        cost = f"{self.multiply_adds} multiply-adds, largest tensor {self.largest} elements"
        return f"<path {self.path}: {cost}{', sliced ' + str(self.sliced) if self.sliced else ''}>"


    def report(self) -> str:
        """Costs, and each step with its string, as tdslc prints them."""
        steps = "".join(f"({','.join(map(str, step))})" for step in self.path)
        how = self._options if self.sliced else (f"--path={steps}",)  # what is sliced is searched for again, with the same end
        return _tools.run(_tools.tdslc(), ["--emit=path", "-w", *how, *self._of])

    def _repr_html_(self) -> str:
        import html
        return f"<pre>{html.escape(self.report())}</pre>"


def path(equation: Any, *shapes: Any, memory_limit: int | None = None, search: str | None = None, objective: str | None = None,
         effort: int | None = None, seed: int | None = None) -> Path:
    """The order in which an einsum is contracted.

    shapes: of each operand, or arrays. memory_limit: elements of the largest tensor. search, objective, effort, seed: as
    docs/paths.md says. KeyboardInterrupt ends the search with the best path so far, or goes on where there is none yet. Raises CompileError.
    """
    if not isinstance(equation, str):
        equation, shapes = _equation.interleaved((equation, *shapes))
    shapes = _equation.shapes_of([getattr(s, "shape", s) for s in shapes])
    options = [f"--{name.replace('_', '-')}={value}" for name, value in
               (("memory_limit", memory_limit), ("search", search), ("objective", objective), ("effort", effort), ("seed", seed))
               if value is not None]
    found, interrupted = _tools.run_search(["--emit=path", "--report=json", "-w", *options, *_equation.arguments(equation, shapes)])
    return Path(json.loads(found), interrupted, tuple(_equation.arguments(equation, shapes)), tuple(options))


def einsum_path(equation: Any, *operands: Any, optimize: Any = True, **kwargs: Any) -> tuple[list[Any], str]:
    """`numpy.einsum_path`: `(["einsum_path", (0, 1), ...], report)`, which `optimize=` of einsum takes, here and in NumPy.

    operands: arrays, or shapes. optimize: a search's name, (name, most elements of a tensor), or True for the default. kwargs: of `tdsl.path`.
    """
    if isinstance(optimize, (tuple, list)) and len(optimize) == 2 and isinstance(optimize[0], (str, bool)) and not isinstance(optimize[1], (tuple, list)):
        optimize, kwargs["memory_limit"] = optimize[0], int(optimize[1])
    elif not isinstance(optimize, (str, bool)) and optimize is not None:
        raise ArgumentError(f"optimize is a search's name, or (name, most elements of a tensor), not {optimize!r}", "optimize")
    if isinstance(optimize, str) and optimize not in ("auto", "auto-hq"):
        kwargs["search"] = {"optimal": "exact", "dp": "exact"}.get(optimize, optimize)
    found = path(equation, *operands, **kwargs)
    return ["einsum_path", *found.path], found.report()
