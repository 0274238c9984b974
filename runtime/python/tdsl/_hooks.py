# SPDX-License-Identifier: Apache-2.0
"""Names that `import tdsl` gives to other packages, whichever is imported first."""
import sys


class _After:
    """A finder that finds nothing itself: it runs `then` after a package has been imported."""

    def __init__(self, name, then):
        self.name, self.then = name, then

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        from importlib.util import find_spec
        sys.meta_path.remove(self)
        spec = find_spec(name)
        sys.meta_path.insert(0, self)  # who asked may import it later, or install it first
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module):
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            run(module)
            self.then()
        spec.loader.exec_module = exec_module
        return spec


def _register():
    from . import opt_einsum  # noqa: F401  registers itself


def install():
    """`optimize="tdsl"` of opt_einsum; that package is not imported for it."""
    if "opt_einsum" in sys.modules:
        _register()
    elif not any(isinstance(finder, _After) for finder in sys.meta_path):
        sys.meta_path.insert(0, _After("opt_einsum", _register))
