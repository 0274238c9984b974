// SPDX-License-Identifier: Apache-2.0
// Kernels from C++: extents come from the arguments, the workspace from the wrapper, and what is wrong is an exception.
#include <cstdio>
#include <vector>

#include "smooth.hpp"

int main()
{
    const double A[3][2] = {{1, 2}, {3, 4}, {5, 6}}, B[2][2] = {{1, 0}, {1, 1}};
    double G[2][2];
    tdsl::gram(A, B, G);
    std::printf("%g %g %g %g\n", G[0][0], G[0][1], G[1][0], G[1][1]);

    std::vector<double> x = {1, 2, 3, 4, 5}, w = {1, 1}, y(4);
    double energy = 0;
    tdsl::smooth(x, w, y, energy);
    std::printf("%g %g %g %g, %g\n", y[0], y[1], y[2], y[3], energy);

    try {
        tdsl::gram(B, A, G);
    } catch (const tdsl::error &e) {
        std::printf("%s\n", e.what());
    }
    if (auto done = tdsl::try_smooth(w, x, y, energy); !done) {
        std::printf("%s\n", done.error().message.c_str());
    }
    return 0;
}
