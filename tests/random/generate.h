/* SPDX-License-Identifier: Apache-2.0 */
/* Random well-typed programs. A program is data first (so that it can be reduced) and text
 * second. All arithmetic is exact: values are small integers, and a bound on the size of every
 * value is carried along, so that any order of summation gives the same bits. */
#ifndef TESTS_RANDOM_GENERATE_H
#define TESTS_RANDOM_GENERATE_H

#include "base/map.h"
#include "base/text.h"
#include "op/types.h"

#define MAX_DIMS       6
#define MAX_RANK       5
#define MAX_TENSORS    28
#define MAX_STATEMENTS 10

typedef struct RandomDim {
    int64_t extent;
    bool open; /* at run time; else written into the program */
} RandomDim;

typedef enum TensorKind {
    TENSOR_IN,
    TENSOR_INOUT,
    TENSOR_SCALAR,
    TENSOR_RESULT,
    TENSOR_LOCAL
} TensorKind;

typedef struct RandomTensor {
    TensorKind kind;
    char name[8];
    DType dtype;
    uint32_t rank;
    uint32_t dim[MAX_RANK];
    double bound; /* |value| <= bound */
    int32_t
        sign;  /* of the values when axes `pair` are exchanged, as is declared; 0: nothing is */
    bool conj; /* and conjugated */
    uint32_t pair[2];
    uint32_t with[2]; /* axes exchanged at once with those; alike: none are */
    bool defined;     /* can be read */
    bool dropped;     /* a parameter that the reducer took out */
    bool typed;       /* a local that is declared with its type */
} RandomTensor;

typedef struct RandomStatement {
    char text[512];
    uint32_t target;
    uint32_t reads; /* bit per tensor */
    bool assigns;   /* gives the target its value: '=' */
    bool dropped;   /* by the reducer */
} RandomStatement;

typedef struct RandomProgram {
    uint64_t seed;
    char name[24]; /* of the kernel */
    bool between; /* parameters are not small integers, but halfway between numbers of a type */
    uint32_t n_dims;
    RandomDim dims[MAX_DIMS];
    uint32_t n_tensors;
    RandomTensor tensors[MAX_TENSORS];
    uint32_t n_statements;
    RandomStatement statements[MAX_STATEMENTS];
} RandomProgram;

void random_program(RandomProgram *p, uint64_t seed);
/* For targets whose machines have tiles of 128 partitions: f32, c64, f16 and bf16, extents about theirs, all fixed, none empty.
 * Parameters of 16 bits hold -1, 0 and 1. */
void random_program_device(RandomProgram *p, uint64_t seed);
/* The kernel as TDSL, with its dims in the kernel's own names. */
void random_program_print(const RandomProgram *p, Text *out);
/* Drops statement `k` and what then has no value or no use; false when nothing would be left. */
bool random_program_drop(RandomProgram *p, uint32_t k);
/* Drops parameter `k` when nothing uses it. */
bool random_program_drop_param(RandomProgram *p, uint32_t k);

#endif
