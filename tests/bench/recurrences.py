#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times of kernels that are computed step by step, one thread, beside loops over NumPy's arrays, and beside an elementwise kernel that moves as many bytes.

usage: recurrences.py TDSL-RUN
"""
import os
import re
import subprocess
import sys
import tempfile
import time

import numpy as np

PROGRAM = """
kernel gated(a: f32[4096, 2048], b: f32[4096, 2048], h0: f32[2048]) -> (h: f32[4096, 2048]) { h[-1,n] = h0[n]; h[t,n] = a[t,n] * h[t - 1,n] + b[t,n]; }
kernel gated_bytes(a: f32[4096, 2048], b: f32[4096, 2048]) -> (h: f32[4096, 2048]) { h[t,n] = a[t,n] * b[t,n] + b[t,n]; }
kernel ema(x: f64[64, 100000], a: f64) -> (y: f64[64, 100000]) { y[b,0] = x[b,0]; y[b,t] = a * x[b,t] + (1 - a) * y[b,t - 1]; }
kernel ema_bytes(x: f64[64, 100000], a: f64) -> (y: f64[64, 100000]) { y[b,t] = a * x[b,t] + 1; }
kernel row(x: f64[6400000], a: f64) -> (y: f64[6400000]) { y[0] = x[0]; y[t] = a * x[t] + (1 - a) * y[t - 1]; }
kernel row_bytes(x: f64[6400000], a: f64) -> (y: f64[6400000]) { y[t] = a * x[t] + 1; }
kernel mamba(x: f32[2048, 256], dt: f32[2048, 256], A: f32[256, 16], B: f32[2048, 16], C: f32[2048, 16]) -> (y: f32[2048, 256]) {
    h: f32[-1,c < 256,s < 16] = 0;
    h[t,c,s] = exp(-dt[t,c] * A[c,s]) * h[t - 1,c,s] + dt[t,c] * B[t,s] * x[t,c];
    y[t,c] = sum[s](h[t,c,s] * C[t,s]);
}
kernel lstm(x: f32[128, 32, 128], W: f32[128, 4, 256], R: f32[256, 4, 256], bias: f32[4, 256]) -> (h: f32[128, 32, 256]) {
    h[-1,b < 32,u < 256] = 0;
    c: f32[-1,b < 32,u < 256] = 0;
    z[t,b,g,u] = x[t,b,d] * W[d,g,u] + h[t - 1,b,k] * R[k,g,u] + bias[g,u];
    c[t,b,u] = sigmoid(z[t,b,0,u]) * c[t - 1,b,u] + sigmoid(z[t,b,1,u]) * tanh(z[t,b,2,u]);
    h[t,b,u] = sigmoid(z[t,b,3,u]) * tanh(c[t,b,u]);
}
kernel lstm_derivatives = vjp lstm(W, R, bias);
kernel rnn(x: f32[512, 256], V: f32[256, 256]) -> (s: f32[512, 256]) { s[-1,h < 256] = 0; s[t,j] = tanh(x[t,j] + sum[k](s[t - 1,k] * V[k,j])); }
kernel power(A: f64[512, 512], y0: f64[512]) -> (y: f64[512]) {
    z[-1,i] = y0[i];
    w[s < 50,i] = sum[j](A[i,j] * z[s - 1,j]);
    z[s,i] = w[s,i] * rsqrt(sum[j](w[s,j] * w[s,j]));
    y[i] = z[49,i];
}
"""
SHAPES = {name: re.findall(r"(\w+): f(\d\d)(?:\[([^\]]*)\])?", head) for name, head in re.findall(r"kernel (\w+)\(([^)]*)\) ->", PROGRAM)}
SHAPES["lstm_derivatives"] = SHAPES["lstm"] + [("dh", "32", "128, 32, 256")]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gated(a, b, h0):
    h = np.empty_like(a)
    for t in range(len(a)):
        h0 = h[t] = a[t] * h0 + b[t]


def ema(x, a):
    y = x.copy()
    for t in range(1, x.shape[1]):
        y[:, t] = a * x[:, t] + (1 - a) * y[:, t - 1]


def mamba(x, dt, A, B, C):
    h = np.zeros_like(A)
    for t in range(len(x)):
        h = np.exp(-dt[t][:, None] * A) * h + dt[t][:, None] * B[t] * x[t][:, None]
        h @ C[t]


def lstm(x, W, R, bias):
    h = c = np.zeros((32, 256), np.float32)
    first = x @ W.reshape(128, 1024) + bias.reshape(1024)
    for t in range(len(x)):
        z = (first[t] + h @ R.reshape(256, 1024)).reshape(32, 4, 256)
        c = sigmoid(z[:, 0]) * c + sigmoid(z[:, 1]) * np.tanh(z[:, 2])
        h = sigmoid(z[:, 3]) * np.tanh(c)


def rnn(x, V):
    s = np.zeros(256, np.float32)
    for t in range(len(x)):
        s = np.tanh(x[t] + s @ V)


def power(A, y0):
    for _ in range(50):
        y0 = A @ y0
        y0 = y0 / np.sqrt(y0 @ y0)


def least(call):
    times = []
    for _ in range(4):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)


def main():
    tool = sys.argv[1]
    random, took = np.random.default_rng(0), {}
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/recurrences.tdsl"
        with open(program, "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        for name, params in SHAPES.items():
            arrays = {p: np.asarray(random.random([int(n) for n in shape.split(",")] if shape else ()) * 0.1, f"f{int(bits) // 8}") for p, bits, shape in params}
            for p, array in arrays.items():
                np.save(f"{folder}/{p}.npy", array)
            done = subprocess.run([tool, program, f"--kernel={name}", "-w", "--time", "--repeat=7", "--cflags=-O3 -march=native", *[f"{p}={folder}/{p}.npy" for p in arrays]],
                                  capture_output=True, text=True, check=True, env=environment)
            took[name] = float(re.search(r"min=(\S+)", done.stdout + done.stderr)[1])
            beside = globals().get(name)
            words = [f"NumPy's loop {least(lambda: beside(**arrays)) / took[name]:.1f} times that"] if beside is not None and name in SHAPES and callable(beside) else []
            if name == "lstm_derivatives":
                words.append(f"{took[name] / took['lstm']:.1f} times the forward pass")
            if not name.endswith("_bytes"):
                print(f"{name}: {1e3 * took[name]:.2f} ms; {'; '.join(words)}")
            elif name[:-6] in took:
                print(f"    {took[name] / took[name[:-6]]:.2f} of the rate of as many bytes")


if __name__ == "__main__":
    main()
