/* SPDX-License-Identifier: Apache-2.0 */
/* DF-MP2 correlation energy of one molecule from its integrals, by a kernel that tdslc made from mp2.tdsl: one call,
 *
 *     B0[i,a,P] = Co[m,i] Cv[n,a] (mn|P),   J = L L^T,  L B = B0 over P,   E = sum T (2T - T^x) / D
 *
 * usage: mp2 FOLDER; files and units as in h2o-cc-pvdz/README.md. Exit 5 when a recorded energy is missed. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mp2.h"

typedef struct Array {
    int rank;
    int64_t extent[4];
    double *data;
} Array;

static void stop(const char *what, const char *name, int status)
{
    fprintf(stderr, "mp2: %s '%s'\n", what, name);
    exit(status);
}

static void *memory(size_t bytes)
{
    void *p = malloc(bytes > 0 ? bytes : 1);
    if (p == NULL) {
        stop("no memory for", "an array", 4);
    }
    return p;
}

/* Fortran order: the first index runs fastest in the file. */
static double *to_c_order(double *from, const Array *a)
{
    size_t n = (size_t)(a->extent[0] * a->extent[1] * a->extent[2]);
    double *out = memory(n * sizeof(double));
    size_t at = 0;
    for (int64_t k = 0; k < a->extent[2]; k++) {
        for (int64_t j = 0; j < a->extent[1]; j++) {
            for (int64_t i = 0; i < a->extent[0]; i++) {
                out[(i * a->extent[1] + j) * a->extent[2] + k] = from[at++];
            }
        }
    }
    free(from);
    return out;
}

/* A .npy file of version 1.0, float64, of rank up to 3: what the integral programs write. */
static Array load(const char *folder, const char *name, int rank)
{
    char path[4096], header[65536];
    unsigned char start[10];
    Array a = {rank, {1, 1, 1, 1}, NULL};
    snprintf(path, sizeof path, "%s/%s.npy", folder, name);
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        stop("cannot read", path, 3);
    }
    if (fread(start, 1, 10, f) != 10 || memcmp(start, "\x93NUMPY\x01", 7) != 0) {
        stop("not a .npy file of version 1.0:", path, 1);
    }
    size_t n = start[8] | (size_t)start[9] << 8;
    if (fread(header, 1, n, f) != n) {
        stop("truncated:", path, 1);
    }
    header[n] = '\0';
    const char *shape = strstr(header, "'shape': (");
    if (strstr(header, "'<f8'") == NULL || shape == NULL) {
        stop("not float64:", path, 1);
    }
    shape += strlen("'shape': (");
    size_t count = 1;
    for (int d = 0; d < rank; d++) {
        char *end = NULL;
        a.extent[d] = strtoll(shape, &end, 10);
        if (end == shape || a.extent[d] < 0 || a.extent[d] > 1 << 20) {
            stop("another shape is expected in", path, 1);
        }
        shape = end + strspn(end, ", ");
        count *= (size_t)a.extent[d];
    }
    if (*shape != ')') {
        stop("another rank is expected in", path, 1);
    }
    a.data = memory(count * sizeof(double));
    if (fread(a.data, sizeof(double), count, f) != count || fgetc(f) != EOF) {
        stop("its length does not fit its shape:", path, 1);
    }
    fclose(f);
    if (strstr(header, "True") != NULL) {
        a.data = to_c_order(a.data, &a);
    }
    return a;
}

static float *to_float(const double *from, size_t n)
{
    float *out = memory(n * sizeof(float));
    for (size_t k = 0; k < n; k++) {
        out[k] = (float)from[k];
    }
    return out;
}

static void check(tdsl_status status, const char *kernel)
{
    if (status != TDSL_OK) {
        fprintf(stderr, "mp2: status %d from kernel '%s'\n", (int)status, kernel);
        exit(5);
    }
}

typedef struct Molecule {
    int64_t o, v, n, x;
    Array eri, J, Co, Cv, eo, ev;
} Molecule;

static double energy_f64(const Molecule *m)
{
    size_t bytes = mp2_workspace_bytes(m->n, m->x, m->o, m->v);
    void *work = memory(bytes);
    double E = 0;
    check(mp2(m->n, m->x, m->o, m->v, m->eri.data, m->J.data, m->Co.data, m->Cv.data,
              m->eo.data, m->ev.data, &E, work, bytes),
          "mp2");
    free(work);
    return E;
}

/* The metric stays in f64. */
static double energy_f32(const Molecule *m)
{
    size_t o = (size_t)m->o, v = (size_t)m->v, n = (size_t)m->n, x = (size_t)m->x;
    float *eri = to_float(m->eri.data, n * n * x), *Co = to_float(m->Co.data, n * o);
    float *Cv = to_float(m->Cv.data, n * v);
    float *eo = to_float(m->eo.data, o), *ev = to_float(m->ev.data, v);
    size_t bytes = mp2_f32_workspace_bytes(m->n, m->x, m->o, m->v);
    void *work = memory(bytes);
    double E = 0;
    check(mp2_f32(m->n, m->x, m->o, m->v, eri, m->J.data, Co, Cv, eo, ev, &E, work, bytes),
          "mp2_f32");
    free(work);
    free(eri), free(Co), free(Cv), free(eo), free(ev);
    return E;
}

/* The recorded energy, or NaN where there is none. */
static double recorded(const char *folder)
{
    char path[4096], text[65536];
    snprintf(path, sizeof path, "%s/meta.json", folder);
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        return NAN;
    }
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    const char *key = "\"df_mp2_correlation_energy\"";
    const char *at = strstr(text, key);
    double value = NAN;
    return at != NULL && sscanf(at + strlen(key), " : %lf", &value) == 1 ? value : NAN;
}

static int compare(const char *type, double energy, double reference, double bound)
{
    printf("  %s  %+.12f hartree", type, energy);
    if (isnan(reference)) {
        printf("\n");
        return 0;
    }
    double off = energy - reference;
    bool missed = !(fabs(off) <= bound);
    printf("   difference %+.2e %s %.0e%s\n", off, missed ? "is not within" : "within", bound,
           missed ? ": MISSED" : "");
    return missed;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: mp2 FOLDER\n");
        return 2;
    }
    Molecule m = {0};
    m.eri = load(argv[1], "eri3", 3);
    m.J = load(argv[1], "J", 2);
    m.Co = load(argv[1], "Co", 2);
    m.Cv = load(argv[1], "Cv", 2);
    m.eo = load(argv[1], "eo", 1);
    m.ev = load(argv[1], "ev", 1);
    m.o = m.Co.extent[1];
    m.v = m.Cv.extent[1];
    m.n = m.eri.extent[0];
    m.x = m.eri.extent[2];
    if (m.eri.extent[1] != m.n || m.Co.extent[0] != m.n || m.Cv.extent[0] != m.n ||
        m.J.extent[0] != m.x || m.J.extent[1] != m.x || m.eo.extent[0] != m.o ||
        m.ev.extent[0] != m.v) {
        stop("the shapes of the arrays do not fit each other in", argv[1], 1);
    }
    printf("DF-MP2 of %s: %lld occupied, %lld virtual, %lld basis, %lld auxiliary functions\n",
           argv[1], (long long)m.o, (long long)m.v, (long long)m.n, (long long)m.x);
    double reference = recorded(argv[1]);
    if (!isnan(reference)) {
        printf("  recorded %+.12f hartree\n", reference);
    }
    int missed = compare("f64", energy_f64(&m), reference, 1e-8);
    missed |= compare("f32", energy_f32(&m), reference, 1e-5);
    free(m.eri.data), free(m.J.data), free(m.Co.data), free(m.Cv.data), free(m.eo.data);
    free(m.ev.data);
    if (missed) {
        fprintf(stderr, "mp2: the recorded energy is missed\n");
    }
    return missed ? 5 : 0;
}
