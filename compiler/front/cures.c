/* SPDX-License-Identifier: Apache-2.0 */
/* Names of functions in other languages and libraries, and how the same is said in TDSL. */
#include "front/check_parts.h"

#include <string.h>

static const struct {
    const char *name, *cure;
} functions[] = {
    {"average", "mean[j](x[i,j])"},
    {"std", "a standard deviation is sqrt(var[j](x[i,j]))"},
    {"softmax", "softmax is exp(S[q,k] - max[l](S[q,l])) divided by the sum of that over k, in "
                "two statements (docs/language.md, attention)"},
    {"dot", "an inner product is sum[i](x[i] * y[i])"},
    {"vdot", "an inner product is sum[i](conj(x[i]) * y[i])"},
    {"inner", "an inner product is sum[i](x[i] * y[i])"},
    {"outer", "an outer product is R[i,j] = x[i] * y[j]"},
    {"matmul", "a product of matrices is C[i,j] = A[i,k] * B[k,j]"},
    {"mm", "a product of matrices is C[i,j] = A[i,k] * B[k,j]"},
    {"bmm", "a product of matrices is C[b,i,j] = A[b,i,k] * B[b,k,j]"},
    {"gemm", "a product of matrices is C[i,j] = alpha * A[i,k] * B[k,j] + beta * C[i,j]"},
    {"tensordot", "a contraction is C[i,l] = A[i,j,k] * B[j,k,l]"},
    {"contract",
     "a contraction is C[i,l] = A[i,j,k] * B[j,k,l], or einsum(\"ijk,jkl->il\", A, B)"},
    {"trace", "a trace is sum[i](A[i,i])"},
    {"tr", "a trace is sum[i](A[i,i])"},
    {"diag", "a diagonal is A[i,i]; a matrix of one is select(index(i) == index(j), x[i], 0)"},
    {"diagonal", "a diagonal is A[i,i]"},
    {"transpose", "a transpose is written with its indices: R[i,j] = A[j,i]"},
    {"permute", "an order of indices is written: R[i,j,k] = A[k,i,j]"},
    {"reshape", "an index of two is written as a position: X[s, h*dh + d]"},
    {"silu", "silu is x[i] * sigmoid(x[i])"},
    {"swish", "swish is x[i] * sigmoid(x[i])"},
    {"softplus", "softplus is max(x[i], 0) + log(1 + exp(-abs(x[i])))"},
    {"elu", "elu is select(x[i] > 0, x[i], exp(x[i]) - 1)"},
    {"leaky_relu", "leaky relu is max(x[i], 0.01 * x[i])"},
    {"logistic", "sigmoid(x[i])"},
    {"where", "select(c, x, y) is x where c, else y"},
    {"ifelse", "select(c, x, y) is x where c, else y"},
    {"if", "select(c, x, y) is x where c, else y"},
    {"clip", "a value between two is min(max(x[i], lo), hi)"},
    {"clamp", "a value between two is min(max(x[i], lo), hi)"},
    {"maximum", "max(x[i], y[i]) is the larger of two, max[i](x[i]) of all"},
    {"fmax", "max(x[i], y[i])"},
    {"minimum", "min(x[i], y[i]) is the lesser of two, min[i](x[i]) of all"},
    {"fmin", "min(x[i], y[i])"},
    {"amax", "max[i](x[i])"},
    {"amin", "min[i](x[i])"},
    {"power", "pow(x[i], 2)"},
    {"square", "x[i] * x[i]"},
    {"fabs", "abs(x[i])"},
    {"rint", "round(x[i]), ties to even"},
    {"trunc", "f64(i64(x[i])), or select(x[i] < 0, ceil(x[i]), floor(x[i]))"},
    {"remainder", "mod(x[i], y[i]) has the sign of y"},
    {"fmod", "mod(x[i], y[i]) has the sign of y; with that of x it is x[i] - y[i]*f64(i64(x[i] "
             "/ y[i]))"},
    {"angle", "arg(z[i])"},
    {"arctan", "atan(x[i])"},
    {"arctan2", "atan2(y[i], x[i])"},
    {"sgn", "sign(x[i])"},
    {"reciprocal", "1 / x[i]"},
    {"tan", "sin(x[i]) / cos(x[i])"},
    {"sinh", "0.5 * (exp(x[i]) - exp(-x[i]))"},
    {"cosh", "0.5 * (exp(x[i]) + exp(-x[i]))"},
    {"log10", "log2(x[i]) / log2(10.0)"},
    {"cbrt", "pow(x[i], 1/3) for x[i] >= 0"},
    {"int", "a cast is written i64(x[i]), and cuts off"},
    {"float", "a cast is written f32(x[i]) or f64(x[i])"},
    {"double", "a cast is written f64(x[i])"},
    {"real", "re(x[i])"},
    {"imag", "im(x[i])"},
    {"conjugate", "conj(x[i])"},
    {"adjoint", "an adjoint is conj(A[j,i])"},
    {"eye", "a unit matrix is select(index(i) == index(j), 1, 0)"},
    {"identity", "a unit matrix is select(index(i) == index(j), 1, 0)"},
    {"delta", "Kronecker's delta is select(index(i) == index(j), 1, 0)"},
    {"kronecker", "Kronecker's delta is select(index(i) == index(j), 1, 0)"},
    {"zeros", "zeros are R[i,j] = 0"},
    {"ones", "ones are R[i,j] = 1"},
    {"full", "R[i,j] = 3 gives every element that value"},
    {"arange", "the position of an index as a number is index(i)"},
    {"range", "an index has the range of the tensors in which it stands, or i < n; its "
              "position as a number is index(i)"},
    {"len", "the extent of a dim is extent(n)"},
    {"size", "the extent of a dim is extent(n)"},
    {"shape", "the extent of a dim is extent(n)"},
    {"cumsum", "a running sum is sum[j <= i](x[j])"},
    {"cumprod", "a running product is prod[j <= i](x[j])"},
    {"tril", "a lower triangle is select(index(j) <= index(i), A[i,j], 0)"},
    {"triu", "an upper triangle is select(index(j) >= index(i), A[i,j], 0)"},
    {"concat",
     "pieces are assigned: R[i] = A[i]; R[i + n] = B[i]; (docs/language.md, positions)"},
    {"concatenate",
     "pieces are assigned: R[i] = A[i]; R[i + n] = B[i]; (docs/language.md, positions)"},
    {"pad", "padding is 0 with a piece added: P[i] = 0; P[i + 1] += x[i]; (docs/language.md, "
            "positions)"},
    {"conv", "a convolution is sum[a](x[i + a] * w[a]) (docs/language.md, positions)"},
    {"conv2d", "a convolution is y[o,i,j] = p[q, i + a, j + b] * k[o,q,a,b] (docs/language.md, "
               "positions)"},
    {"gather", "an element at a position that is a value is w[idx[i]]"},
    {"take", "an element at a position that is a value is w[idx[i]]"},
};

const char *cure_function(const char *name)
{
    for (size_t k = 0; k < sizeof functions / sizeof functions[0]; k++) {
        if (strcmp(functions[k].name, name) == 0) {
            return functions[k].cure;
        }
    }
    return NULL;
}
