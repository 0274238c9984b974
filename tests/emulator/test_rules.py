# SPDX-License-Identifier: Apache-2.0
"""Each rule refuses the kernel that breaks it, at its line, and accepts the mended kernel."""

import unittest

import breaking_engines
import breaking_general
import breaking_subset
from support import CLOSING, arrays_of, kernel_text, marked_line, variant
from nki_emulator import errors
from nki_emulator.dtype import TYPES
from nki_emulator.emulate import emulate
from nki_emulator.manifest import Argument, Manifest

# Rules tested elsewhere, with the place.
ELSEWHERE = {}


def _all_cases():
    """(rule, sentence, inputs, target, options, text, paths) for every row of every table."""
    for table in (breaking_general.CASES, breaking_engines.CASES, breaking_subset.CASES):
        for rule, sentence, specs, body, *target in table:
            names = ", ".join(s.split(":")[0] for s in specs.split())
            yield (rule, sentence, specs, target[0] if target else "trn2", {},
                   kernel_text(body, names), ("k.py", "k.py"))
    for rule, sentence, specs, options, body in breaking_general.WHOLE:
        names = ", ".join(s.split(":")[0] for s in specs.split())
        yield rule, sentence, specs, "trn2", options, kernel_text(body, names, ""), \
            ("k.py", "k.py")
    for rule, sentence, text, paths in breaking_subset.MODULES:
        yield rule, sentence, "", "trn2", {}, text, paths or ("k.py", "k.py")


def _run(text, specs, target, options, path):
    arrays, types, _ = arrays_of(specs, low=1)
    return emulate(text, arrays, types=types, target=target, path=path, **options)


class Rules(unittest.TestCase):
    def test_every_broken_kernel_is_refused_with_its_rule_at_its_line(self):
        for rule, sentence, specs, target, options, text, paths in _all_cases():
            with self.subTest(rule=rule, case=sentence):
                line = marked_line(text)
                with self.assertRaises(errors.RuleError) as caught:
                    _run(variant(text, False), specs, target, options, paths[0])
                self.assertEqual(caught.exception.rule, rule, str(caught.exception))
                self.assertIsInstance(caught.exception, getattr(errors, rule))
                self.assertTrue(str(caught.exception).startswith(
                    f"{paths[0]}:{caught.exception.line}: [{rule}] "))
                if line is not None:
                    self.assertEqual(caught.exception.line, line, str(caught.exception))

    def test_every_mended_kernel_is_accepted(self):
        for rule, sentence, specs, target, options, text, paths in _all_cases():
            with self.subTest(rule=rule, case=sentence):
                _run(variant(text, True), specs, target, options, paths[1])

    def test_every_rule_has_a_kernel_that_breaks_it(self):
        broken = {row[0] for row in _all_cases()} | set(ELSEWHERE)
        self.assertEqual(sorted(set(errors.RULES) - broken), [])

    def test_an_instructions_error_names_its_operation(self):
        with self.assertRaises(errors.G5) as caught:
            _run(kernel_text("s = nl.ndarray(shape=(128, 8), dtype=nl.float32, "
                             "buffer=nl.sbuf)\nnisa.memset(dst=s[48:56, 0:8], value=1.0)\n"),
                 "", "trn2", {}, "k.py")
        self.assertEqual(caught.exception.op, "nisa.memset")
        self.assertIn("Invalid access of 8 partitions starting at partition 48",
                      str(caught.exception))

    def test_ranges_warn_turns_e14_into_a_note(self):
        body = ("t = nl.ndarray(shape=(1, 1), dtype=nl.float32, buffer=nl.sbuf)\n"
                "nisa.memset(dst=t[...], value=0.0)\n"
                "nisa.activation(dst=t[...], op=nl.sqrt, data=t[...])\n")
        with self.assertRaises(errors.E14):
            _run(kernel_text(body), "", "trn2", {}, "k.py")
        result = _run(kernel_text(body), "", "trn2", {"ranges": "warn"}, "k.py")
        self.assertEqual(len(result.warnings), 1)
        self.assertIn("[E14]", result.warnings[0])

    def test_an_argument_is_updated_where_it_was_copied_to(self):
        body = ("o = nl.ndarray(shape=(8, 8), dtype=nl.float32, buffer=nl.shared_hbm)\n"
                "t = nl.ndarray(shape=(8, 8), dtype=nl.float32, buffer=nl.sbuf)\n"
                "nisa.dma_copy(dst=o[...], src=a[...])\n"
                "nisa.dma_copy(dst=t[...], src=o[0:8, 0:8])\n"
                "nisa.tensor_scalar(dst=t[...], data=t[...], op0=nl.add, operand0=1.0)\n"
                "nisa.dma_copy(dst=o[0:8, 0:8], src=t[...])\nreturn o\n")
        arrays, _, plain = arrays_of("a:float32:8x8")
        single = [TYPES["float32"], (8, 8)]
        for number in (0, 1, None):
            manifest = Manifest("k", [Argument("a", "input", *single, number=0)],
                                [Argument("a_out", "output", *single, number=number)])
            if number == 0:
                result = emulate(kernel_text(body, "a", ""), arrays, manifest)
                self.assertEqual(result.outputs[0].tolist(), (plain[0] + 1).tolist())
                continue
            with self.assertRaises(errors.H5) as caught:
                emulate(kernel_text(body, "a", ""), arrays, manifest)
            self.assertEqual((caught.exception.op, caught.exception.line), ("nisa.dma_copy", 13))

    def test_the_closing_lines_alone_are_a_legal_kernel(self):
        result = _run(kernel_text("", "", CLOSING), "", "trn2", {}, "k.py")
        self.assertEqual(result.outputs[0].tolist(), [[1.0]])


if __name__ == "__main__":
    unittest.main()
