# SPDX-License-Identifier: Apache-2.0
"""The Python subset, checked on the text before anything runs (rules P1 to P15, A1).

The front ends of the device read a kernel's source and understand part of Python; which part
differs between versions. What passes here is what all known ones take: an allow-list of
statement and expression forms, everything else refused with the rule and the line. Kernels in
the emission profile need no more than this.
"""

import ast
import os
import re
import warnings

from .api import api_names, unknown_name
from .errors import broken

_MODULES = {"nki": "nki", "nki.language": "nl", "nki.isa": "nisa", "numpy": "np"}
_FLOAT32_MAX = 3.4028235677973366e+38


class SubsetChecker:
    """Checks one module; `kernel` and `parameters` are known afterwards."""

    def __init__(self, text, path="<kernel>"):
        self.path, self.names = path, api_names()
        self.kernel, self.parameters, self.constants = None, [], set()
        self.roots = {}                      # local name -> 'nki', 'nl', 'nisa' or 'np'
        base = os.path.basename(path)
        if base.endswith(".py") and not re.fullmatch(r"(?!nki)[A-Za-z_]\w*\.py", base):
            broken("P14", f"'{base}' cannot be imported safely", line=1, path=path)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.tree = ast.parse(text, path)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            broken("P1", f"not Python: {error}", line=getattr(error, "lineno", 1), path=path)

    def fail(self, rule, node, text, op=None):
        broken(rule, text, op=op, line=getattr(node, "lineno", None), path=self.path)

    # --- the module -------------------------------------------------------------------

    def check(self):
        """Check everything; the AST is safe to run with the restricted names afterwards."""
        try:
            for at, node in enumerate(self.tree.body):
                self._module_statement(at, node)
            if self.kernel is None:
                self.fail("P12", None, "no function is marked @nki.jit")
            self._function(self.kernel)
        except RecursionError:
            self.fail("P1", None, "nested too deeply")
        return self

    def _module_statement(self, at, node):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and at == 0:
            return
        if isinstance(node, ast.Import):
            self._import(node)
        elif isinstance(node, ast.Assign):
            self._constant(node)
        elif isinstance(node, ast.FunctionDef):
            if self.kernel is not None:
                self.fail("P12", node, f"a second function '{node.name}'")
            self.kernel = node
        else:
            self.fail("P12", node, f"{type(node).__name__} at module level")

    def _import(self, node):
        for alias in node.names:
            if alias.name.split(".")[0] == "neuronxcc":
                self.fail("A1", node, "neuronxcc names are not in the dialect")
            if alias.name not in _MODULES:
                self.fail("P12", node, f"import of {alias.name}")
            if "." in alias.name and alias.asname is None:
                self.roots["nki"] = "nki"
            else:
                self.roots[alias.asname or alias.name] = _MODULES[alias.name]

    def _constant(self, node):
        target = node.targets[0]
        if len(node.targets) != 1 or not isinstance(target, ast.Name):
            self.fail("P12", node, "a module constant is NAME = literal")
        try:
            value = ast.literal_eval(node.value)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            self.fail("P12", node, f"'{target.id}' is not a literal")
        for item in value if isinstance(value, tuple) else (value,):
            if not isinstance(item, (int, float, str)):
                self.fail("P12", node, f"'{target.id}' is not a number, string or tuple")
            self._number(node, item)
        self.constants.add(target.id)

    # --- the kernel -------------------------------------------------------------------

    def _function(self, node):
        marks = [self._dotted(d) for d in node.decorator_list]
        if marks != ["nki.jit"]:
            self.fail("P12", (node.decorator_list or [node])[0],
                      "the kernel's only decorator is @nki.jit")
        args = node.args
        if args.vararg or args.kwarg or args.kwonlyargs or args.posonlyargs:
            self.fail("P4", node, "parameters are plain names")
        if args.defaults:
            self.fail("P4", node, "parameters have no defaults")
        if node.returns is not None or any(a.annotation for a in args.args):
            self.fail("P2", node, "annotations are not in the subset")
        self.parameters = [a.arg for a in args.args]
        for child in ast.walk(node):
            if child is not node and isinstance(child, (
                    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                self.fail("P2", child, f"{type(child).__name__} inside the kernel")
        self.bound = {*self.parameters, *self.constants}
        for child in ast.walk(node):
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                self.bound.add(child.id)
        for name in self.bound:
            if name in self.roots or name in ("range", "float"):
                self.fail("P13", node, f"'{name}' hides a module or a function")
        body = node.body
        if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and \
                isinstance(body[0].value.value, str):
            body = body[1:]
        self._block(body)
        if not body or not isinstance(body[-1], ast.Return) or body[-1].value is None:
            self.fail("G15", node.body[-1], "a kernel ends by returning its outputs")

    def _block(self, body):
        for statement in body:
            self._statement(statement)

    def _statement(self, node):
        handler = getattr(self, "_do_" + type(node).__name__, None)
        if handler is None:
            self.fail("P2", node, f"{type(node).__name__} is not in the subset")
        handler(node)

    def _do_Pass(self, node):
        pass

    _do_Break = _do_Continue = _do_Pass

    def _do_Expr(self, node):
        if not isinstance(node.value, ast.Call):
            if isinstance(node.value, (ast.Yield, ast.YieldFrom, ast.Await)):
                self.fail("P1", node, f"{type(node.value).__name__} is not in the subset")
            self.fail("P2", node, "an expression without effect")
        self._call(node.value, statement=True)

    def _do_Assert(self, node):
        self._expression(node.test)
        if node.msg is not None:
            self._expression(node.msg)

    def _do_Return(self, node):
        if node.value is not None:
            self._expression(node.value)

    def _do_Assign(self, node):
        for target in node.targets:
            self._target(target)
        if len(node.targets) > 1 and any(isinstance(t, ast.Tuple) for t in node.targets):
            self.fail("P2", node, "several targets with a tuple among them")
        self._expression(node.value)

    def _do_AugAssign(self, node):
        self._target(node.target)
        self._operator(node, node.op)
        self._expression(node.value)

    def _do_AnnAssign(self, node):
        self.fail("P2", node, "annotations are not in the subset")

    def _target(self, node):
        if isinstance(node, ast.Tuple):
            for item in node.elts:
                if not isinstance(item, ast.Name):
                    self.fail("P2", node, "a target is a name or a tuple of names")
        elif isinstance(node, ast.Subscript):
            self.fail("P6", node, "updating a tile with an assignment is not allowed")
        elif not isinstance(node, ast.Name):
            self.fail("P2", node, "a target is a name or a tuple of names")

    def _do_If(self, node):
        self._expression(node.test)
        self._block(node.body)
        self._block(node.orelse)

    def _do_For(self, node):
        if not isinstance(node.target, ast.Name):
            self.fail("P7", node, "the loop target is a plain name")
        if node.orelse:
            self.fail("P7", node, "for..else is not in the subset")
        source = node.iter
        if isinstance(source, ast.Call):
            if self._dotted(source.func) != "range":
                self.fail("P7", node, "a loop runs over range(...) or a tuple")
            self._range(source)
        elif isinstance(source, (ast.Tuple, ast.List, ast.Name)):
            self._expression(source)
        else:
            self.fail("P7", node, "a loop runs over range(...) or a tuple")
        self._block(node.body)

    def _do_While(self, node):
        self.fail("P7", node, "while is not in the subset")

    # --- expressions ------------------------------------------------------------------

    def _expression(self, node):
        handler = getattr(self, "_is_" + type(node).__name__, None)
        if handler is None:
            if isinstance(node, ast.JoinedStr):
                self.fail("P9", node, "formatted strings are not in the subset")
            if isinstance(node, ast.Starred):
                self.fail("P4", node, "star arguments are not in the subset")
            self.fail("P1", node, f"{type(node).__name__} is not in the subset")
        handler(node)

    def _number(self, node, value):
        if isinstance(value, bool) or value is None or value is Ellipsis or \
                isinstance(value, str):
            return
        if isinstance(value, int):
            if not -2 ** 31 <= value < 2 ** 31:
                self.fail("P8", node, f"integer value {value} is too large")
        elif isinstance(value, float):
            if not abs(value) <= _FLOAT32_MAX:
                self.fail("P8", node, f"{value} is no finite float32")
        else:
            self.fail("P1", node, f"a {type(value).__name__} literal")

    def _is_infinity(self, node):
        """float('inf') or np.inf: who takes one says so (optable.py)."""
        if isinstance(node, ast.Call):
            return isinstance(node.func, ast.Name) and node.func.id == "float" and not node.keywords and \
                len(node.args) == 1 and isinstance(node.args[0], ast.Constant) and node.args[0].value == "inf"
        return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and \
            self.roots.get(node.value.id) == "np" and node.attr == "inf"

    def _is_Constant(self, node):
        self._number(node, node.value)

    def _is_Name(self, node):
        if node.id in self.roots:
            self.fail("A1", node, f"the module {node.id} as a value")
        if node.id not in self.bound:
            self.fail("P13", node, f"undefined name '{node.id}'")

    def _is_Attribute(self, node):
        dotted = self._dotted(node)
        if dotted is None:
            self._expression(node.value)
            if node.attr not in ("shape", "dtype"):
                self.fail("P13", node, f"attribute '{node.attr}'")
            return
        parts = dotted.split(".")
        if self._is_infinity(node):
            return
        if parts[0] in ("nl", "nisa", "nki"):
            self._api(node, parts)
        elif parts[0] == "neuronxcc":
            self.fail("A1", node, "neuronxcc names are not in the dialect")
        else:
            if parts[0] not in self.bound:
                self.fail("P13", node, f"undefined name '{parts[0]}'")
            if parts[1:] not in (["shape"], ["dtype"]):
                self.fail("P13", node, f"attribute '{'.'.join(parts[1:])}'")

    def _api(self, node, parts):
        """A dotted name in nl, nisa or nki: it must be a name of the dialect."""
        if len(parts) == 1 or parts[0] == "nki":
            self.fail("A1", node, f"{'.'.join(parts)} inside a kernel")
        if parts[1] not in self.names[parts[0]]:
            try:
                unknown_name(parts[0], parts[1])
            except Exception as error:
                raise error.locate(None, node.lineno, self.path)
        if len(parts) > 3 or (len(parts) == 3 and parts[0] != "nisa"):
            self.fail("A1", node, f"{'.'.join(parts)} is not a name of the dialect")

    def _dotted(self, node):
        """'nl.x' for an attribute chain on a name, with imports resolved; None if it is not."""
        if isinstance(node, ast.Name):
            return self.roots.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            base = self._dotted(node.value)
            if base is None:
                return None
            joined = f"{base}.{node.attr}"
            for full, short in (("nki.language", "nl"), ("nki.isa", "nisa")):
                if joined == full:
                    return short
            return joined
        return None

    def _is_Tuple(self, node):
        for item in node.elts:
            self._expression(item)

    _is_List = _is_Tuple

    def _is_Subscript(self, node):
        inner = node.value.slice if isinstance(node.value, ast.Subscript) else None
        if isinstance(inner, (ast.Slice, ast.Tuple)) or \
                (isinstance(inner, ast.Constant) and inner.value is Ellipsis):
            self.fail("P15", node, "a slice of a slice; index the tensor once")  # not of a tile in a list
        self._expression(node.value)
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for item in items:
            if isinstance(item, ast.Slice):
                for part in (item.lower, item.upper, item.step):
                    if part is not None:
                        self._expression(part)
            elif isinstance(item, (ast.Tuple, ast.List)):
                self.fail("P1", node, "a nested tuple as an index")
            else:
                self._expression(item)

    def _operator(self, node, operator):
        if isinstance(operator, ast.MatMult):
            self.fail("P5", node, "the @ operator is not in the subset")
        if not isinstance(operator, (ast.Add, ast.Sub, ast.Mult)):
            self.fail("P1", node, f"operator {type(operator).__name__}; fold it to a literal")

    def _is_BinOp(self, node):
        self._operator(node, node.op)
        self._expression(node.left)
        self._expression(node.right)

    def _is_UnaryOp(self, node):
        if isinstance(node.op, ast.USub) and self._is_infinity(node.operand):
            return
        if isinstance(node.op, ast.USub):
            if not isinstance(node.operand, ast.Constant):
                self.fail("P1", node, "a minus sign goes before a literal only")
            value = node.operand.value
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                self.fail("P1", node, "a minus sign goes before a number")
            self._number(node, -value)
        elif isinstance(node.op, ast.Not):
            self._expression(node.operand)
        else:
            self.fail("P1", node, f"operator {type(node.op).__name__}")

    def _is_BoolOp(self, node):
        for value in node.values:
            self._expression(value)

    def _is_Compare(self, node):
        for operator in node.ops:
            if isinstance(operator, (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
                self.fail("P3", node, f"{type(operator).__name__} is not in the subset")
        for value in (node.left, *node.comparators):
            self._expression(value)

    def _is_IfExp(self, node):
        for value in (node.test, node.body, node.orelse):
            self._expression(value)

    def _is_Call(self, node):
        if not self._is_infinity(node):
            self._call(node, statement=False)

    def _range(self, node):
        if node.keywords or not 1 <= len(node.args) <= 3:
            self.fail("P10", node, "range takes 1 to 3 positional arguments")
        for value in node.args:
            if isinstance(value, ast.Starred):
                self.fail("P4", node, "star arguments are not in the subset")
            self._expression(value)

    def _call(self, node, statement):
        for keyword in node.keywords:
            if keyword.arg is None:
                self.fail("P4", node, "keyword expansion is not supported")
        if any(isinstance(v, ast.Starred) for v in node.args):
            self.fail("P4", node, "star arguments are not in the subset")
        for value in node.args:
            if isinstance(value, (ast.GeneratorExp, ast.Lambda)):
                self._expression(value)
        dotted = self._dotted(node.func)
        parts = dotted.split(".") if dotted else []
        title = dotted
        if parts and parts[0] in ("nl", "nisa", "nki") and len(parts) > 1:
            self._api(node, parts)
            if parts[0] == "nisa" and not statement:
                self.fail("A4", node, "operations return nothing; pass dst=", op=title)
            if parts[0] == "nl" and parts[1] not in (
                    "ndarray", "shared_identity_matrix", "program_id", "num_programs"):
                self.fail("A1", node, f"{dotted}(...) is a wrapper outside the dialect",
                          op=title)
        elif len(parts) == 2 and parts[0] in self.bound and parts[1] in ("ap", "reshape"):
            title = parts[1]
        elif dotted == "range":
            self.fail("P7", node, "range outside of a for statement")
        else:
            name = dotted or "an expression"
            self.fail("P13", node, f"call of {name}, which is no operation of the dialect")
        if node.args:
            self.fail("P11", node, f"{len(node.args)} positional arguments", op=title)
        for keyword in node.keywords:
            self._expression(keyword.value)


def check_module(text, path="<kernel>"):
    """Parse and check a module's text; returns the checker, with its tree and kernel."""
    return SubsetChecker(text, path).check()
