#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables of figures: what a change does to texts that are too many to read.

A row is `NAME: KEY NUMBER KEY NUMBER ...`; what follows a `;` is of the same form, and printed only where it changed. A row without numbers
is a text (`refused: ...`). print_changes shows the rows that changed, first those where something grew most in proportion, and the sums.

    tables.py RECORDED PRINTED [--all]    the changes from one file to another, for tests in C (support/golden.h)
"""
import re
import sys

MOST = 5    # rows of the table, unless all are asked for


def rows_of(text):
    """The figures of each name."""
    return dict(line.split(": ", 1) for line in text.splitlines())


def changes_of(kept, made, names=None):
    """(name, old, new) of each row that differs; None: not there."""
    names = names if names is not None else [*kept, *(name for name in made if name not in kept)]
    return [(name, kept.get(name), made.get(name)) for name in names if kept.get(name) != made.get(name)]


def numbers(row):
    """The figures of a row, before and after its semicolon; none of a row that is a text."""
    halves = [re.findall(r"(\S+) (-?[\d.]+(?:e[-+]?\d+)?)(?= |$)", half) for half in (row or "").split("; ", 1)]
    if not halves[0] or " ".join(f"{k} {n}" for k, n in halves[0]) != row.split("; ", 1)[0]:
        return {}, {}
    return tuple({key: float(number) for key, number in half} for half in (halves + [[]])[:2])


def growth(change):
    """Worst first: what has no figures any more, then by what grew most in proportion."""
    was, now = (numbers(row)[0] for row in change[1:])
    if not was or not now:
        return (not now, 0, [])
    grew = [(now[key] + 1) / (was[key] + 1) for key in was if key in now and was[key] >= 0 and now[key] >= 0]
    return (False, max(grew, default=0), grew)


def step(old, new):
    return f"{old:.10g}" if old == new else f"{old:.10g} -> {new:.10g}"


def kinds_changed(were, are):
    return ", ".join(f"{key} {step(were.get(key, 0), are.get(key, 0))}" for key in sorted(were | are) if were.get(key, 0) != are.get(key, 0))


def print_rows(shown):
    both = [(numbers(old)[0], numbers(new)[0]) for _, old, new in shown]
    keys = list(dict.fromkeys(key for was, now in both if was and now for key in was | now if was.get(key) != now.get(key)))
    table = [("", *keys)]
    for name, old, new in shown:
        (was, were), (now, are) = numbers(old), numbers(new)
        if was and now:
            table.append((name, *(step(was.get(key, 0), now.get(key, 0)) for key in keys)))
            kinds = kinds_changed(were, are)
            table += [f"    {kinds}"] if kinds else []
        else:
            table.append(f"{name}: {old or 'not there'} -> {new or 'not there'}")
    widths = [max(len(row[k]) for row in table if not isinstance(row, str)) for k in range(len(keys) + 1)]
    for row in table:
        print(row if isinstance(row, str) else "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths)).rstrip())


def print_changes(changes, most=MOST):
    """The table of the rows that changed, the worst of them, and the sums over all."""
    shown = sorted(changes, key=growth, reverse=True)[:most]
    print_rows(shown)
    if len(shown) < len(changes):
        print(f"and {len(changes) - len(shown)} more rows")
    both = [(numbers(old)[0], numbers(new)[0]) for _, old, new in changes if numbers(old)[0] and numbers(new)[0]]
    for key in dict.fromkeys(key for was, _ in both for key in was):
        was, now = sum(a.get(key, 0) for a, _ in both), sum(b.get(key, 0) for _, b in both)
        more = sum(b.get(key, 0) > a.get(key, 0) for a, b in both)
        less = sum(b.get(key, 0) < a.get(key, 0) for a, b in both)
        if more or less:
            print(f"{key}: {was:.10g} -> {now:.10g} in all of these; more in {more}, less in {less}")
    gone, new = sum(row is None for _, _, row in changes), sum(row is None for _, row, _ in changes)
    if gone or new:
        print(f"{gone} rows gone, {new} new")


def main():
    texts = []
    for path in sys.argv[1:3]:
        with open(path, encoding="utf-8") as stream:
            texts.append(rows_of(stream.read()))
    changes = changes_of(*texts)
    print_changes(changes, len(changes) if "--all" in sys.argv else MOST)


if __name__ == "__main__":
    main()
