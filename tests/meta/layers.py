# SPDX-License-Identifier: Apache-2.0
"""The order of knowledge: a folder of compiler/ includes only itself and folders of earlier levels."""
import re
import tree

LEVELS = [["base"], ["op"], ["dump"], ["front"], ["graph"], ["target"], ["schedule"], ["opt", "path", "nest"], ["dist"], ["loop"], ["lower"], ["tile"], ["backend/ctext"], ["backend"], ["driver"]]
LEVEL = {folder: n for n, level in enumerate(LEVELS) for folder in level}
# Rooms of a folder: each knows what stands in the folder itself, and these others; and who stands there and knows them.
ROOMS = {"driver/report": [], "driver/lsp": ["driver/report"], "driver/run": ["driver/report"],
         "driver/tune": ["driver/report", "driver/run"], "path/terms": [], "backend/c/interface": []}
DOORS = {"driver/report": ["compile.c", "tool.c", "path_tool.c"], "driver/lsp": ["main.c"], "driver/run": [],
         "driver/tune": ["main.c"], "path/terms": ["apply.c"],
         "backend/c/interface": ["emit.c", "emit_across.c", "emit_part.c"]}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
# Of the runtime, compiled into both.
SHARED = "../../runtime/src/sha256.h"
# Generated headers and where the folder that owns them stands.
GENERATED = {"grammar/einsum": "front", "grammar/tdsl": "front", "grammar/dump": "dump"}


def folder_of(path):
    parts = path.split("/")
    if parts[0] == "backend":
        return "/".join(parts[:2])
    return parts[0]


def level_of(folder):
    """A room of the back ends that has a level of its own, else all of them; None: no folder that is known."""
    return LEVEL.get(folder, LEVEL.get(folder.split("/")[0]))


def room_of(path):
    room = path.rpartition("/")[0]
    return room if room in ROOMS else None


def enters(path, name):
    """Has it no door to the room that `name` is in?"""
    here, there = room_of(path), room_of(name)
    if there is None or here == there:
        return False
    return there not in ROOMS[here] if here else path.rpartition("/")[2] not in DOORS[there]


def may_include(user, used):
    if user == used:
        return True
    return level_of(used) < level_of(user)


def breaches_in(path, text):
    """path is relative to compiler/."""
    user = folder_of(path)
    for m in INCLUDE.finditer(text):
        line = text.count("\n", 0, m.start(1)) + 1
        name = m.group(1)
        if name.startswith("grammar/"):
            used = GENERATED.get(name.split(".")[0])
        elif name == "backend/targets.inc":
            used = "driver"
        elif name == SHARED:
            used = user if user == "base" else None
        elif name.startswith("tdsl/"):
            used = user if user in ("driver",) else None
        else:
            used = folder_of(name) if "/" in name else None
        if used is None or level_of(used) is None:
            yield f'compiler/{path}:{line}: "{name}" is not written relative to compiler/'
        elif not may_include(user, used):
            yield f"compiler/{path}:{line}: {user} includes {used}, which is not to its left"
        elif enters(path, name):
            yield f"compiler/{path}:{line}: {path} has no door to the room of {name}"


def self_test():
    assert not list(breaches_in("graph/a.c", '#include "base/arena.h"\n#include "graph/graph.h"\n'))
    assert list(breaches_in("graph/a.c", '#include "opt/opt.h"\n'))
    assert list(breaches_in("opt/a.c", '#include "path/path.h"\n'))
    assert list(breaches_in("backend/c/a.c", '#include "backend/null/target.h"\n'))
    assert list(breaches_in("graph/a.c", '#include "graph.h"\n'))
    assert not list(breaches_in("backend/c/a.c", '#include "backend/ctext/ctext.h"\n'))
    assert list(breaches_in("backend/ctext/a.c", '#include "backend/c/emit.h"\n'))
    assert list(breaches_in("loop/a.c", '#include "backend/ctext/ctext.h"\n'))
    assert list(breaches_in("driver/report/a.c", '#include "driver/run/run.h"\n'))
    assert list(breaches_in("path/auto.c", '#include "path/terms/multi.h"\n'))
    assert list(breaches_in("driver/check.c", '#include "driver/tune/tune.h"\n'))
    assert list(breaches_in("backend/c/legalise.c", '#include "backend/c/interface/interface.h"\n'))
    assert not list(breaches_in("driver/lsp/price.c", '#include "driver/report/report.h"\n'))


def main():
    a = tree.arguments()
    self_test()
    found, n = [], 0
    for path in tree.files(a.root, "compiler", ends=(".c", ".h", ".def")):
        n += 1
        inner = path[len("compiler/"):]
        if level_of(folder_of(inner)) is None:
            found.append(f"{path}: a folder that is not in the order of knowledge")
            continue
        found += breaches_in(inner, tree.without_comments(tree.read(a.root, path)))
    tree.verdict(found, n)


main()
