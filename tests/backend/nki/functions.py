# SPDX-License-Identifier: Apache-2.0
"""Functions that Trainium's engines have not, by the emulator beside NumPy: exact, or within some units of f32.

    functions.py --bin DIR
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np

EDGES = [0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 8388606.5, 8388608.0, 1e10, -1e10, 4194303.5, -4194304.5, np.inf, -np.inf, np.nan]
SMALL = [1e-8, -1e-8, 1e-3, -1e-3, 0.2499, 0.2501, -0.2499, -0.2501]
LINE = np.linspace(-6, 6, 1201)
# Name: the function, where it is tried, units of the result's last place.
FUNCTIONS = {
    "floor": (np.floor, [*LINE, *EDGES], 0), "ceil": (np.ceil, [*LINE, *EDGES], 0), "round": (np.rint, [*LINE, *EDGES], 0),
    "finite": (lambda x: np.where(np.isinf(x), 0, x), [*LINE, *EDGES], 0), "exp2": (np.exp2, LINE, 6), "log2": (np.log2, np.abs(LINE) + 1e-3, 3),
    "atan": (np.arctan, [*LINE, *SMALL, 1e10, -1e10, np.inf, -np.inf, np.nan, 1e-30], 4), "expm1": (np.expm1, [*LINE, *SMALL], 4), "log1p": (np.log1p, [*np.maximum(LINE, -0.9), *SMALL], 4),
}


def check(tool, name, folder):
    function, values, units = FUNCTIONS[name]
    x = np.asarray(values, np.float32)
    np.save(os.path.join(folder, "x.npy"), x)
    with open(os.path.join(folder, "f.tdsl"), "w", encoding="utf-8") as stream:
        stream.write(f"kernel f(x: f32[{x.size}]) -> (y: f32[{x.size}]) {{ y[i] = {name}(x[i]); }}\n")
    done = subprocess.run([tool, "f.tdsl", "--target=emulator", "x=x.npy", "-o", "y=y.npy"], cwd=folder, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        return done.stderr
    y, wanted = np.load(os.path.join(folder, "y.npy")), function(x.astype(np.float64))
    near = np.abs(np.where(np.isfinite(wanted), y - wanted, 0)) <= units * np.spacing(np.abs(wanted).astype(np.float32))
    same = (y == wanted.astype(np.float32)) | (np.isnan(y) & np.isnan(wanted)) | (np.isfinite(wanted) & near)
    return None if same.all() else f"{name}({x[~same][:4]}) is {y[~same][:4]}, not {wanted[~same][:4]}"


def check_angles(tool, folder):
    """Of points in all directions, and on the axes."""
    size = 10.0 ** np.random.default_rng(3).integers(-6, 7, 1201)
    y, x = (np.append(size * f(LINE), at).astype(np.float32) for f, at in ((np.sin, [0, 0, 1, -1, 0, 2, -2]), (np.cos, [0, -1, 0, 0, 1, 2, -2])))
    np.save(os.path.join(folder, "x.npy"), x)
    np.save(os.path.join(folder, "y.npy"), y)
    with open(os.path.join(folder, "f.tdsl"), "w", encoding="utf-8") as stream:
        stream.write(f"kernel f(y: f32[{x.size}], x: f32[{x.size}]) -> (a: f32[{x.size}]) {{ a[i] = atan2(y[i], x[i]); }}\n")
    done = subprocess.run([tool, "f.tdsl", "--target=emulator", "x=x.npy", "y=y.npy", "-o", "a=a.npy"], cwd=folder, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        return done.stderr
    a, wanted = np.load(os.path.join(folder, "a.npy")), np.arctan2(y.astype(np.float64), x)
    far = np.abs(a - wanted) > 4 * np.spacing(np.abs(wanted).astype(np.float32))
    return f"atan2({y[far][:4]}, {x[far][:4]}) is {a[far][:4]}, not {wanted[far][:4]}" if far.any() else None


def check_casts(tool, folder):
    """A cast to 16 bits rounds there and then, whatever reads it."""
    x, y = np.random.default_rng(7).standard_normal((2, 500)).astype(np.float32)
    np.save(os.path.join(folder, "x.npy"), x)
    np.save(os.path.join(folder, "y.npy"), y)
    with open(os.path.join(folder, "f.tdsl"), "w", encoding="utf-8") as stream:
        stream.write("kernel f(x: f32[500], y: f32[500]) -> (a: f32[500]) { a[i] = f32(f16(x[i] * y[i])) - f32(f16(x[i] + y[i])) * f32(f16(abs(x[i]))); }\n")
    done = subprocess.run([tool, "f.tdsl", "--target=emulator", "x=x.npy", "y=y.npy", "-o", "a=a.npy"], cwd=folder, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        return done.stderr
    half = lambda v: v.astype(np.float16).astype(np.float32)           # noqa: E731
    wanted = half(x * y) - half(x + y) * half(np.abs(x))
    off = np.abs(np.load(os.path.join(folder, "a.npy")) - wanted).max()
    return f"off by {off}" if off > 0 else None


def check_mod(tool, folder):
    """Exactly, as long as the quotient is not beyond 2^22: of two values, and by numbers."""
    rng, n = np.random.default_rng(2), 4000
    y = np.copysign(1 + rng.random(n), rng.standard_normal(n)) * np.exp2(rng.integers(-9, 9, n))
    x = np.concatenate([y[:2000] * rng.uniform(-2.0 ** 22, 2.0 ** 22, 2000), y[2000:] * rng.integers(-2 ** 21, 2 ** 21, 2000)]).astype(np.float32)
    x[:6], y[:6] = [0, 1, -1, 3, -1e5, 1e-6], [1, 1, 1, 7, 7, -360]
    y = y.astype(np.float32)
    np.save(os.path.join(folder, "x.npy"), x)
    np.save(os.path.join(folder, "y.npy"), y)
    with open(os.path.join(folder, "f.tdsl"), "w", encoding="utf-8") as stream:
        stream.write(f"kernel f(x: f32[{n}], y: f32[{n}]) -> (a: f32[{n}], b: f32[{n}], c: f32[{n}]) {{ a[i] = mod(x[i], y[i]); b[i] = mod(x[i], 3600.1); c[i] = mod(x[i], -1000); }}\n")
    done = subprocess.run([tool, "f.tdsl", "--target=emulator", "x=x.npy", "y=y.npy", *(w for v in "abc" for w in ("-o", f"{v}={v}.npy"))], cwd=folder, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        return done.stderr
    for name, by in (("a", y), ("b", np.float32(3600.1)), ("c", np.float32(-1000))):
        wanted = np.mod(x.astype(np.float64), np.float64(by)).astype(np.float32)
        got = np.load(os.path.join(folder, name + ".npy"))
        far = got != wanted
        if far.any():
            return f"{name}: mod({x[far][:4]}, ..) is {got[far][:4]}, not {wanted[far][:4]}"
    return None


def check_bools(tool, folder):
    """All but 0 is true, however small or large."""
    x = np.array([*LINE, *EDGES, 300, -300, 1e-30, 0.25], np.float32)
    np.save(os.path.join(folder, "x.npy"), x)
    with open(os.path.join(folder, "f.tdsl"), "w", encoding="utf-8") as stream:
        stream.write(f"kernel f(x: f32[{x.size}]) -> (a: bool[{x.size}]) {{ a[i] = bool(x[i]); }}\n")
    done = subprocess.run([tool, "f.tdsl", "--target=emulator", "x=x.npy", "-o", "a=a.npy"], cwd=folder, capture_output=True, text=True, timeout=120)
    return done.stderr if done.returncode else None if np.load(os.path.join(folder, "a.npy")).tobytes() == (x != 0).tobytes() else "others are true"


def check_conditions(tool, folder):
    """A selection by a condition on what its branches read too makes that once."""
    text = "kernel f(x: f32[64, 512], s: f32[64]) -> (q: f32[64, 512]) { q[i,j] = round(x[i,j] / s[i]) + round(log(abs(x[i,j]) + 1)); }\n"
    done = subprocess.run([tool.replace("tdsl-run", "tdslc"), "-", "--target=trn2", "-w", "--dump=legal"], input=text, cwd=folder, capture_output=True, text=True, timeout=120)
    lines = len(done.stdout.splitlines())
    return done.stderr if done.returncode else f"{lines} lines" if lines > 100 else None


def check_whole(tool, folder):
    """Quotients, remainders and truncation to the ends of what a call may give."""
    rng, most = np.random.default_rng(5), 1 << 22
    ends = np.array([0, 1, -1, 2, -2, 3, -7, 100, most, -most, most - 1, 1 - most], np.int32)
    x = np.concatenate([np.repeat(ends, ends.size), rng.integers(-most, most + 1, 2000, np.int32)])
    y = np.concatenate([np.tile(ends, ends.size), rng.integers(-3000, 3000, 1000, np.int32), rng.integers(-most, most + 1, 1000, np.int32)])
    z = np.concatenate([rng.standard_normal(x.size - 5) * 10.0 ** rng.integers(-3, 7, x.size - 5), [np.nan, 0.5, -0.5, 8388607.5, -1e7]]).astype(np.float32)
    text = f"""kernel f(x: i32[{x.size}], y: i32[{x.size}], z: f32[{x.size}]) -> (q: i32[{x.size}], r: i32[{x.size}], t: i32[{x.size}], c: i32[{x.size}]) {{
        q[i] = x[i] / y[i]; r[i] = mod(x[i], y[i]); t[i] = i32(min(z[i], 16000000)); c[i] = mod(x[i], 37) - mod(x[i] / -16, 5); }}"""
    by = np.where(y == 0, 1, y).astype(np.int64)
    wanted = {"q": np.where(y == 0, 0, np.trunc(x / by)), "r": np.where(y == 0, 0, np.mod(x, by)),
              "t": np.trunc(np.nan_to_num(np.minimum(z, 16000000))), "c": np.mod(x, 37) - np.mod(np.trunc(x / -16), 5)}
    for name, a in {"x": x, "y": y, "z": z}.items():
        np.save(os.path.join(folder, name + ".npy"), a)
    with open(os.path.join(folder, "f.tdsl"), "w", encoding="utf-8") as stream:
        stream.write(text)
    words = [f"{name}={name}.npy" for name in "xyz"] + [w for name in wanted for w in ("-o", f"{name}={name}.npy")]
    done = subprocess.run([tool, "f.tdsl", "--target=emulator", *words], cwd=folder, capture_output=True, text=True, timeout=120)
    wrong = [name for name in wanted if done.returncode == 0 and not np.array_equal(np.load(os.path.join(folder, name + ".npy")), wanted[name])]
    return done.stderr if done.returncode else f"{wrong} differ" if wrong else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
        for name in FUNCTIONS:
            wrong = check(os.path.join(os.path.abspath(options.bin), "tdsl-run"), name, folder)
            failed += wrong is not None
            print(f"FAILED {name}: {wrong}" if wrong else f"{name}: right")
        for name, part in (("atan2", check_angles), ("casts to 16 bits", check_casts), ("casts to bool", check_bools), ("mod", check_mod), ("conditions", check_conditions), ("quotients, remainders, truncation", check_whole)):
            wrong = part(os.path.join(os.path.abspath(options.bin), "tdsl-run"), folder)
            failed += wrong is not None
            print(f"FAILED {name}: {wrong}" if wrong else f"{name}: right")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
