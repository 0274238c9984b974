# SPDX-License-Identifier: Apache-2.0
"""Run every test of the emulator: python3 tests/emulator/run.py [-v] [test names].

Exit status as unittest's; 77, with the reason on standard error, where NumPy is not installed.
"""

import os
import sys
import unittest


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, here)
    sys.dont_write_bytecode = True
    try:
        import numpy                                  # noqa: F401  (asked for only)
    except ImportError:
        sys.stderr.write("skipped: NumPy is not installed (python3-numpy)\n")
        return 77
    names = [a for a in sys.argv[1:] if not a.startswith("-")]
    loader = unittest.TestLoader()
    suite = loader.loadTestsFromNames(names) if names else loader.discover(here, "test_*.py")
    if suite.countTestCases() == 0:
        sys.stderr.write("no test was found\n")
        return 1
    result = unittest.TextTestRunner(verbosity=2 if "-v" in sys.argv else 1).run(suite)
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
