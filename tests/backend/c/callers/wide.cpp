// SPDX-License-Identifier: Apache-2.0
// What callers.py compiles with wide.hpp: results, and what must be refused, one line each.
#include "wide.hpp"

#include <array>
#include <cstdio>
#include <type_traits>
#include <vector>
#if defined(__cpp_lib_mdspan)
#include <mdspan>
#endif

/* As std::mdspan, with any strides. */
template <class T> struct span2 {
    using element_type = T;
    T *at;
    std::size_t extents[2], strides[2];
    static constexpr std::size_t rank() { return 2; }
    T *data_handle() const { return at; }
    std::size_t extent(std::size_t axis) const { return extents[axis]; }
    std::size_t stride(std::size_t axis) const { return strides[axis]; }
};

static_assert(std::is_constructible_v<tdsl::view<const double, 2>, double (&)[2][3]>);
static_assert(!std::is_constructible_v<tdsl::view<const double, 2>, double (&)[2]>);
static_assert(!std::is_constructible_v<tdsl::view<double, 1>, const std::vector<double> &>);
static_assert(!std::is_constructible_v<tdsl::view<const double, 1>, std::vector<float> &>);
static_assert(!std::is_constructible_v<tdsl::view<const double, 1>, span2<double>>);

static void said(const tdsl::outcome &done)
{
    if (done.has_value()) {
        std::printf("done\n");
    } else {
        std::printf("%d %s\n", static_cast<int>(done.error().status), done.error().message.c_str());
    }
}

int main()
{
    std::vector<double> in(18), out(6);
    for (std::size_t i = 0; i < in.size(); i++) {
        in[i] = static_cast<double>(i);
    }
    const std::array<std::complex<float>, 3> type = {{{1, 2}, {3, 4}, {5, 6}}};
    std::array<std::complex<float>, 3> z;
    const bool size[2] = {true, false};
    const std::int32_t sizes[2] = {-1, 4};
    double acc[5] = {0, 1, 2, 3, 4};
    const std::uint16_t h[2] = {0, 0x3c00};
    bool any[2];
    std::int64_t total = 10;
    tdsl::wide(tdsl::view<double, 2>(in.data(), 6, 3), type, size, sizes, 2., {0, 1}, true, acc, h, total, out, z, any);
    std::printf("%g %g, %g %g, %g %g, %d %d, %d\n", out[0], out[5], static_cast<double>(z[2].real()),
                static_cast<double>(z[2].imag()), acc[0], acc[4], any[0], any[1], static_cast<int>(total));
    said(tdsl::try_wide({in.data(), 5, 3}, type, size, sizes, 2., {0, 1}, true, acc, h, total, out, z, any));
    said(tdsl::try_wide({in.data(), 6, 3}, type, size, sizes, 2., {0, 1}, true, {acc, 4}, h, total, out, z, any));

    double x[4] = {1, 2, 3, 4}, s[4];
    said(tdsl::try_hidden(3, 5, x, s));
    said(tdsl::try_hidden(3, 6, x, s));
    said(tdsl::try_hidden(3, 7, x, s));
    const double flat[2][3] = {{1, 2, 3}, {4, 5, 6}};
    double one = 0;
    tdsl::fixed(flat, one);
    std::printf("%g %g\n", s[3], one);
    said(tdsl::try_square({x, 2, 2}, {x, 2}, {s, 2}));
    said(tdsl::try_square({x, 2, 3}, {x, 2}, {s, 2}));
    said(tdsl::try_apart({x, 4}, {x, 4}, {s, 1}));
    said(tdsl::try_apart({x, 4}, {x, 4}, {s, 2}));

    double a[6] = {1, 2, 3, 4, 5, 6}, b[4] = {1, 0, 1, 1}, g[4];
    tdsl::memory kept;
    tdsl::options how;
    how.threads = 2;
    how.workspace = &kept;
    said(tdsl::try_large({a, 3, 2}, {b, 2, 2}, {g, 2, 2}, how));
    said(tdsl::try_large({b, 2, 2}, {a, 3, 2}, {g, 2, 2}, how));
    std::printf("%g %g\n", g[0], g[3]);

    /* What other languages rule out. */
    bool right = !tdsl::try_large({a, 3, 2}, {b, 2, 2}, {a + 2, 2, 2}) &&
                 !tdsl::try_large({a, 3, 2}, {nullptr, 2, 2}, {g, 2, 2}) &&
                 tdsl::try_large(span2<double>{a, {3, 2}, {2, 1}}, {b, 2, 2}, {g, 2, 2}) &&
                 !tdsl::try_large(span2<double>{a, {3, 2}, {1, 3}}, {b, 2, 2}, {g, 2, 2});
    try {
        tdsl::large({a, 3, 2}, {b, 2, 2}, {a + 2, 2, 2});
        right = false;
    } catch (const tdsl::error &e) {
        right = right && e.status() == TDSL_E_OVERLAP;
    }
#if defined(__cpp_lib_mdspan)
    right = right && tdsl::try_large(std::mdspan(a, 3, 2), std::mdspan<const double, std::extents<int, 2, 2>>(b), std::mdspan(g, 2, 2)) &&
            !tdsl::try_large(std::mdspan(b, 2, 2), std::mdspan(a, 3, 2), std::mdspan(g, 2, 2)) &&
            !tdsl::try_large(std::mdspan<double, std::dextents<int, 2>, std::layout_left>(a, 3, 2), std::mdspan(b, 2, 2), std::mdspan(g, 2, 2));
#endif
    std::printf("%s", right ? "" : "wrong\n");
    return 0;
}
