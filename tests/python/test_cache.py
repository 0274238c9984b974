# SPDX-License-Identifier: Apache-2.0
"""Compiled code on disk: kept, checked, limited, shared by many processes of which some are killed."""
import hashlib
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest
import warnings

CALL = """
import numpy as np, tdsl, sys
a = np.arange(6.0).reshape(2, 3)
assert (tdsl.einsum("ij,kj->ik", a, a) == a @ a.T).all()
info = tdsl.cache_info()
print(info["hits"], info["compiled"], info["entries"])
"""


class Cache(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.entries = os.path.join(self.folder, "v1")

    def start(self, text=CALL, **environment):
        env = {**os.environ, "TDSL_CACHE_DIR": self.folder, **environment}
        return subprocess.Popen([sys.executable, "-B", "-c", text], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def call(self, *arguments, **environment):
        process = self.start(*arguments, **environment)
        out, self.told = process.communicate(timeout=100)
        self.assertEqual(process.returncode, 0, self.told)
        return out.strip()

    def entry(self):
        name, = [n for n in os.listdir(self.entries) if len(n) == 64]
        return os.path.join(self.entries, name)

    def check_whole(self):
        """Every entry holds what its meta.json says."""
        names = [n for n in os.listdir(self.entries) if len(n) == 64]
        for name in names:
            with open(os.path.join(self.entries, name, "kernel.so"), "rb") as f:
                digest = hashlib.sha256(f.read()).hexdigest()
            with open(os.path.join(self.entries, name, "meta.json"), encoding="utf-8") as f:
                self.assertEqual(json.load(f)["sha256"], digest)
        return names

    def test_caches_that_are_only_read(self):
        self.assertEqual(self.call(), "0 1 1")
        with tempfile.TemporaryDirectory() as own:
            shared = os.pathsep.join(["/no/such/folder", self.folder])
            names, entry = os.listdir(self.entries), self.entry()
            used = os.stat(entry).st_mtime_ns
            for _ in range(2):
                self.assertEqual(self.call(TDSL_CACHE_DIR=own, TDSL_CACHE_PATH=shared), "1 0 0")
                self.assertEqual(self.told, "")
            self.assertEqual((os.listdir(self.entries), os.stat(entry).st_mtime_ns), (names, used))
            # what others could change is told of and compiled
            for path in os.path.join(entry, "kernel.so"), entry, self.entries, self.folder:
                with self.subTest(path), tempfile.TemporaryDirectory() as other:
                    mode = os.stat(path).st_mode
                    os.chmod(path, mode | 0o020)
                    self.assertEqual(self.call(TDSL_CACHE_DIR=other, TDSL_CACHE_PATH=shared), "0 1 1")
                    self.assertIn(f"{path} can be written by others", self.told)
                    os.chmod(path, mode)
            link = os.path.join(own, "link")
            os.symlink(self.folder, link)
            with tempfile.TemporaryDirectory() as other:
                self.assertEqual(self.call(TDSL_CACHE_DIR=other, TDSL_CACHE_PATH=link), "0 1 1")
                self.assertIn("is a link", self.told)
            with open(os.path.join(entry, "kernel.so"), "r+b") as f:
                f.write(b"damaged")
            self.assertEqual(self.call(TDSL_CACHE_DIR=own, TDSL_CACHE_PATH=shared), "0 1 1")

    def test_the_next_process_finds_what_this_one_compiled(self):
        self.assertEqual(self.call(), "0 1 1")
        self.assertEqual(self.call(), "1 0 1")
        self.assertEqual(self.call(TDSL_CFLAGS="-O1"), "0 1 2")  # other flags, another entry
        for path in self.entries, *[os.path.join(self.entries, n) for n in os.listdir(self.entries)]:
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o700)

    def test_a_damaged_entry_is_compiled_again(self):
        self.call()
        for damage in ("kernel.so", "meta.json"):
            path = os.path.join(self.entry(), damage)
            with open(path, "r+b") as f:
                f.seek(50)
                f.write(b"x")
            self.assertEqual(self.call(), "0 1 1", damage)
            self.check_whole()
        os.remove(os.path.join(self.entry(), "kernel.so"))
        self.assertEqual(self.call(), "0 1 1")
        self.assertEqual(self.call(), "1 0 1")

    def test_entries_not_used_for_longest_go(self):
        self.call()
        first = self.entry()
        os.utime(first, (1, 1))
        self.assertEqual(self.call(TDSL_CFLAGS="-O1", TDSL_CACHE_BYTES="100000"), "0 1 1")
        self.assertNotEqual(self.entry(), first)

    def test_what_a_killed_process_left_goes_in_time(self):
        self.call()
        for name, old in ("tmp-old", 1), ("tmp-new", time.time()):
            os.mkdir(os.path.join(self.entries, name))
            os.utime(os.path.join(self.entries, name), (old, old))
        self.call(TDSL_CFLAGS="-O1")
        self.assertNotIn("tmp-old", os.listdir(self.entries))
        self.assertIn("tmp-new", os.listdir(self.entries))

    def test_a_folder_that_others_can_write_is_not_used(self):
        os.mkdir(self.entries)
        os.chmod(self.entries, 0o777)
        self.assertEqual(self.call(), "0 1 1")
        self.assertIn("SlowWarning", self.told)
        self.assertEqual(os.listdir(self.entries), [])
        os.rmdir(self.entries)
        with open(self.entries, "w", encoding="utf-8"):
            pass
        self.assertEqual(self.call(), "0 1 1")

    def on_a_disk(self, options, text=CALL):
        """What a call prints whose cache folder is a file system of its own, mounted in a namespace of its own."""
        disk = os.path.join(self.folder, "disk")
        os.mkdir(disk, 0o700)
        mount = ["unshare", "--map-root-user", "--mount", "sh", "-c", 'mount -t tmpfs -o "$1,mode=700" none "$0" && shift && exec "$@"', disk, options]
        if shutil.which("unshare") is None or subprocess.run([*mount, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("file systems cannot be mounted here")
        done = subprocess.run([*mount, sys.executable, "-B", "-c", text], env={**os.environ, "TDSL_CACHE_DIR": disk}, capture_output=True, text=True, timeout=100, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.told = done.stderr
        os.rmdir(disk)
        return done.stdout.strip()

    def test_a_full_disk_and_one_from_which_nothing_is_run(self):
        for options, why in (("size=16k", "cannot be written"), ("nr_inodes=3", "cannot be written"), ("noexec", "cannot be loaded")):
            with self.subTest(options):
                self.assertRegex(self.on_a_disk(options), r"^0 \d 1$")
                self.assertEqual(self.told.count("SlowWarning"), 1, self.told)
                self.assertIn(why, self.told)
                self.assertIn("kept for this process only", self.told)

    def test_numbers_of_bytes(self):
        limit = "import tdsl; print(tdsl.cache_info()['limit'])"
        for text, bytes_ in (("1G", 1 << 30), ("512", 512), ("64 KiB", 65536), ("2mb", 2 << 20), ("", 1 << 30)):
            self.assertEqual((self.call(limit, TDSL_CACHE_BYTES=text), self.told), (str(bytes_), ""))
        for text in "much", "-1", "1.5G", "1e9":
            self.assertEqual(self.call(limit, TDSL_CACHE_BYTES=text), str(1 << 30))
            self.assertEqual(self.told.count("TDSL_CACHE_BYTES is"), 1)

    def test_a_compiler_without_complex_numbers(self):
        """Such as tcc: these kernels are interpreted, others compiled, and TDSL_REQUIRE_CC refuses."""
        compiler = os.path.join(self.folder, "no-complex")
        with open(compiler, "w", encoding="utf-8") as f:
            f.write('#!/bin/sh\nfor word; do case $word in *.c) ! grep -q _Complex "$word" || { echo "error: _Complex is not supported" >&2; exit 1; } ;; esac; done\nexec cc "$@"\n')
        os.chmod(compiler, 0o755)
        text = "import tdsl, numpy as np; print(tdsl.einsum('ij->j', np.ones((2, 3))), tdsl.einsum('ij->j', np.full((2, 3), 1j)))"
        self.assertEqual(self.call(text, TDSL_CC=compiler), "[2. 2. 2.] [0.+2.j 0.+2.j 0.+2.j]")
        self.assertEqual(self.told.count("SlowWarning"), 1, self.told)
        self.assertIn("has no complex numbers", self.told)
        process = self.start(text, TDSL_CC=compiler, TDSL_REQUIRE_CC="1")
        self.assertIn("CCompilerError", process.communicate(timeout=100)[1])

    def test_many_processes_of_which_some_are_killed(self):
        rng = random.Random(1)
        processes = [self.start(TDSL_CFLAGS=f"-O1 -DX={k % 4}") for k in range(50)]
        killed = rng.sample(processes, 20)
        for process in killed:
            time.sleep(rng.uniform(0, 0.3))
            process.send_signal(signal.SIGKILL)
        for process in processes:
            _, told = process.communicate(timeout=400)
            if process not in killed:
                self.assertEqual(process.returncode, 0, told)
        self.assertEqual(len(self.check_whole()), 4)
        for k in range(4):
            self.assertEqual(self.call(TDSL_CFLAGS=f"-O1 -DX={k}"), "1 0 4")

    def test_a_c_compiler_that_fails_says_why(self):
        process = self.start(TDSL_CFLAGS="-no-such-option")
        _, told = process.communicate(timeout=100)
        self.assertIn("CCompilerError", told)
        self.assertIn("no-such-option", told)
        self.assertEqual(os.listdir(self.entries), [])

    def test_importing_needs_no_numpy(self):
        self.assertEqual(self.call("import sys, tdsl; print('numpy' in sys.modules)"), "False")


warnings.simplefilter("error", ResourceWarning)
unittest.main()
