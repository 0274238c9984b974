# SPDX-License-Identifier: Apache-2.0
"""The build backend of the package: scikit-build-core, but for source distributions, which there are none of."""
from scikit_build_core.build import *  # noqa: F403
from scikit_build_core.build import __all__  # noqa: F401


def build_sdist(sdist_directory, config_settings=None):
    del sdist_directory, config_settings
    raise SystemExit("tdsl has no source distribution: a wheel is built from a whole checkout, as the compiler lies outside of runtime/python. "
                     "In a checkout: pip install ./runtime/python, pip wheel ./runtime/python --no-deps, or python -m build --wheel runtime/python")
