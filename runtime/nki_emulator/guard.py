# SPDX-License-Identifier: Apache-2.0
"""Keeps a checked kernel from running away: loops are counted, arithmetic is bounded.

After the subset check and before Python runs the text, two things are written into its tree:
a step at the head of every loop body (rule H2 when there are too many), and a checked function
around every arithmetic operator, so that integers stay int32 (P8, what the front ends compute
in) and operators meet numbers only (P5 on tensors, P1 on anything else). Tuples and lists are
weighed where they are made and compared, with what they hold: one that holds another twice, and
so on, would take for ever to compare or to print (H2). Lines stay.
"""

import ast
import math

from .errors import broken
from .memory import View
from .session import current, is_active

_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
_FLOAT32_MAX = 3.4028235677973366e+38
_MOST_ITEMS = 10000
_DEEPEST = 16
_ITEMS_PER_STEP = 16


class _Guard(ast.NodeTransformer):
    def visit_For(self, node):
        self.generic_visit(node)
        call = ast.Call(ast.Name("__step__", ast.Load()), [], [])
        node.body.insert(0, self._at(ast.Expr(call), node.body[0]))
        return node

    def visit_BinOp(self, node):
        self.generic_visit(node)
        return self._at(self._checked(node.op, node.left, node.right), node)

    def visit_AugAssign(self, node):
        self.generic_visit(node)
        name = self._at(ast.Name(node.target.id, ast.Load()), node)
        value = self._at(self._checked(node.op, name, node.value), node)
        return self._at(ast.Assign([node.target], value), node)

    def visit_Tuple(self, node):
        self.generic_visit(node)
        return self._weighed(node) if isinstance(node.ctx, ast.Load) else node

    visit_List = visit_Tuple

    def visit_Subscript(self, node):
        node.value = self.visit(node.value)
        if isinstance(node.slice, ast.Tuple):  # which may hold slices, and is no value then
            self.generic_visit(node.slice)
        else:
            node.slice = self.visit(node.slice)
        return node

    def visit_Compare(self, node):
        self.generic_visit(node)
        node.left = self._weighed(node.left)
        node.comparators = [self._weighed(value) for value in node.comparators]
        return node

    def _weighed(self, node):
        return self._at(ast.Call(ast.Name("__weighed__", ast.Load()), [node], []), node)

    @staticmethod
    def _checked(operator, left, right):
        return ast.Call(ast.Name("__arithmetic__", ast.Load()),
                        [ast.Constant(_SIGNS[type(operator)]), left, right], [])

    @staticmethod
    def _at(node, place):
        return ast.fix_missing_locations(ast.copy_location(node, place))


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _arithmetic(sign, left, right):
    if isinstance(left, View) or isinstance(right, View):
        broken("P5", f"operator {sign} on a tensor; use an nki.isa operation")
    if not (_is_number(left) and _is_number(right)):
        broken("P1", f"operator {sign} on {type(left).__name__} and {type(right).__name__}")
    value = left + right if sign == "+" else left - right if sign == "-" else left * right
    if isinstance(value, int):
        if not -2 ** 31 <= value < 2 ** 31:
            broken("P8", f"integer value {value} is too large")
    elif not math.isfinite(value) or abs(value) > _FLOAT32_MAX:
        broken("P8", f"{value} is no finite float32")
    return value


def _weighed(value):
    if isinstance(value, (tuple, list)):
        items, rest = 0, [(value, 1)]
        while rest:
            holder, depth = rest.pop()
            items += len(holder)
            if items > _MOST_ITEMS:
                broken("H2", f"a tuple or list of more than {_MOST_ITEMS} items, with those it holds")
            if depth > _DEEPEST:
                broken("H2", f"tuples or lists in one another, more than {_DEEPEST} deep")
            rest += [(item, depth + 1) for item in holder if isinstance(item, (tuple, list))]
        if items >= _ITEMS_PER_STEP and is_active():
            current().step(items // _ITEMS_PER_STEP)
    return value


def guards():
    """The functions that a guarded tree calls, by name."""
    return {"__step__": lambda: current().step(), "__arithmetic__": _arithmetic,
            "__weighed__": _weighed}


def guarded_tree(tree):
    """The module's tree with steps and checked arithmetic; changes the tree it is given."""
    return _Guard().visit(tree)
