/* SPDX-License-Identifier: Apache-2.0 */
/* metric J.npy W.npy: W = L^-1 of J = L L^T, which the language has no word for. It is small, so one process makes it. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 4096

static double J[MOST * MOST], W[MOST * MOST];

/* An array of f64, x by x, version 1.0: its header is kept for W. */
static size_t read_square(const char *path, char *header, size_t *header_bytes)
{
    FILE *f = fopen(path, "rb");
    unsigned char start[10];
    size_t rows = 0, columns = 0, n = 0;
    if (f == NULL || fread(start, 1, 10, f) != 10) {
        return 0;
    }
    size_t length = start[8] + 256u * start[9];
    memcpy(header, start, 10);
    if (length < 4000 && fread(header + 10, 1, length, f) == length) {
        header[10 + length] = '\0';
        *header_bytes = 10 + length;
        const char *shape = strstr(header + 10, "'shape': (");
        bool ok = shape != NULL && strstr(header + 10, "'<f8'") != NULL &&
                  sscanf(shape, "'shape': (%zu, %zu)", &rows, &columns) == 2;
        n = ok && rows == columns && rows <= MOST &&
                    fread(J, sizeof *J, rows * rows, f) == rows * rows
                ? rows
                : 0;
    }
    (void)fclose(f);
    return n;
}

static bool factor(size_t n)
{
    for (size_t p = 0; p < n; p++) {
        for (size_t q = 0; q <= p; q++) {
            double s = J[p * n + q];
            for (size_t r = 0; r < q; r++) {
                s -= J[p * n + r] * J[q * n + r];
            }
            if (p == q && !(s > 0)) {
                return false;
            }
            J[p * n + q] = p == q ? sqrt(s) : s / J[q * n + q];
        }
    }
    return true;
}

static void invert(size_t n)
{
    for (size_t q = 0; q < n; q++) {
        for (size_t p = q; p < n; p++) {
            double s = p == q ? 1 : 0;
            for (size_t r = q; r < p; r++) {
                s -= J[p * n + r] * W[r * n + q];
            }
            W[p * n + q] = s / J[p * n + p];
        }
    }
}

int main(int argc, char **argv)
{
    static char header[4096];
    size_t bytes = 0, n = argc == 3 ? read_square(argv[1], header, &bytes) : 0;
    if (n == 0 || !factor(n)) {
        fprintf(stderr, "metric: a positive definite J.npy of f64 is expected\n");
        return 3;
    }
    invert(n);
    FILE *f = fopen(argv[2], "wb");
    bool ok = f != NULL && fwrite(header, 1, bytes, f) == bytes &&
              fwrite(W, sizeof *W, n * n, f) == n * n;
    return f != NULL && fclose(f) == 0 && ok ? 0 : 3;
}
