// SPDX-License-Identifier: Apache-2.0
// What the wrappers of tdslc --emit=hpp share: a view of an array, how to call, what can go wrong. C++17, or later; nothing but
// the standard library. The guard makes any number of copies harmless.
#ifndef TDSL_VIEW_HPP
#define TDSL_VIEW_HPP

#if __cplusplus < 201703L && !(defined(_MSVC_LANG) && _MSVC_LANG >= 201703L)
#error "the wrappers of tdslc --emit=hpp need C++17: -std=c++17, or in CMake set(CMAKE_CXX_STANDARD 17)"
#endif
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#if defined(__cpp_exceptions)
#include <stdexcept>
#endif
#if defined(__has_include)
#if __has_include(<version>)
#include <version>
#endif
#endif
#if defined(__cpp_lib_expected)
#include <expected>
#endif

namespace tdsl {

/* An array of the caller's in C order: a pointer and R extents. It is made of anything with the members of std::mdspan, of an
 * array `double a[3][2]`, of what has data() and size(), or of a pointer and extents. A view of T is one of const T. */
template <class T, std::size_t R> class view;
namespace detail {
template <class> struct is_view : std::false_type {
};
template <class T, std::size_t R> struct is_view<view<T, R>> : std::true_type {
};
template <class T> using plain = std::remove_cv_t<std::remove_reference_t<T>>;
} // namespace detail

template <class T, std::size_t R> class view {
public:
    template <class... Extents,
              class = std::enable_if_t<sizeof...(Extents) == R &&
                                       (std::is_convertible_v<Extents, std::size_t> && ...)>>
    constexpr view(T *data, Extents... extents)
        : data_(data), extents_{static_cast<std::size_t>(extents)...}
    {
    }

    /* std::mdspan and its like; in_order() is false where its strides are not those of rows. */
    template <class Span, class = decltype(std::declval<const Span &>().data_handle()),
              class = std::enable_if_t<
                  Span::rank() == R &&
                  std::is_convertible_v<typename Span::element_type (*)[], T (*)[]>>>
    constexpr view(const Span &span) : data_(span.data_handle())
    {
        std::size_t stride = 1;
        for (std::size_t axis = R; axis-- > 0;) {
            extents_[axis] = static_cast<std::size_t>(span.extent(axis));
            in_order_ = in_order_ && (extents_[axis] <= 1 ||
                                      static_cast<std::size_t>(span.stride(axis)) == stride);
            stride *= extents_[axis];
        }
        in_order_ = in_order_ || stride == 0;
    }

    /* double a[3][2] */
    template <class Array, class = std::enable_if_t<std::is_array_v<Array> && std::rank_v<Array> == R>>
    constexpr view(Array &array) : data_(first(array))
    {
        extents_of<Array>(0);
    }

    /* std::vector, std::array, std::span: one dimension. */
    template <class Range, class = std::enable_if_t<R == 1 && !std::is_array_v<detail::plain<Range>> &&
                                       !detail::is_view<detail::plain<Range>>::value>,
              class = decltype(std::declval<Range &>().size()),
              class = std::enable_if_t<std::is_convertible_v<
                  std::remove_pointer_t<decltype(std::declval<Range &>().data())> (*)[], T (*)[]>>>
    constexpr view(Range &&range) : data_(range.data()), extents_{range.size()}
    {
    }

    template <class U, class = std::enable_if_t<std::is_convertible_v<U (*)[], T (*)[]>>>
    constexpr view(const view<U, R> &other) : data_(other.data()), in_order_(other.in_order())
    {
        for (std::size_t axis = 0; axis < R; axis++) {
            extents_[axis] = other.extent(axis);
        }
    }

    constexpr T *data() const { return data_; }
    constexpr std::size_t extent(std::size_t axis) const { return extents_[axis]; }
    constexpr bool in_order() const { return in_order_; }
    constexpr std::size_t size() const
    {
        std::size_t n = 1;
        for (std::size_t extent : extents_) {
            n *= extent;
        }
        return n;
    }

    template <class... Places, class = std::enable_if_t<sizeof...(Places) == R>>
    constexpr T &operator()(Places... places) const
    {
        std::size_t at = 0, axis = 0;
        ((at = at * extents_[axis++] + static_cast<std::size_t>(places)), ...);
        return data_[at];
    }

private:
    template <class Array> static constexpr T *first(Array &array)
    {
        if constexpr (std::rank_v<Array> == 1) {
            return array;
        } else {
            return first<std::remove_extent_t<Array>>(array[0]);
        }
    }
    template <class Array> constexpr void extents_of(std::size_t axis)
    {
        extents_[axis] = std::extent_v<Array>;
        if constexpr (std::rank_v<Array> > 1) {
            extents_of<std::remove_extent_t<Array>>(axis + 1);
        }
    }

    T *data_;
    std::size_t extents_[R] = {};
    bool in_order_ = true;
};

/* What went wrong: a TDSL_E_... of the kernel's header, and a sentence with the argument's name. */
struct failure {
    tdsl_status status = TDSL_OK;
    std::string message;
};

#if defined(__cpp_lib_expected)
using outcome = std::expected<void, failure>;
#else
/* What std::expected<void, failure> is, as far as callers need it. */
class [[nodiscard]] outcome {
public:
    outcome() = default;
    outcome(failure f) : failure_(std::move(f)) {}
    bool has_value() const { return failure_.status == TDSL_OK; }
    explicit operator bool() const { return has_value(); }
    const failure &error() const { return failure_; }

private:
    failure failure_;
};
#endif

#if defined(__cpp_exceptions)
class error : public std::runtime_error {
public:
    explicit error(const failure &f) : std::runtime_error(f.message), status_(f.status) {}
    tdsl_status status() const { return status_; }

private:
    tdsl_status status_;
};
#endif

/* Workspace that lives longer than a call: it grows to what the largest call needs. For one call at a time. */
class memory {
public:
    void *hold(std::size_t bytes)
    {
        if (bytes > bytes_ || !at_) {
            at_.reset(new (std::nothrow) unsigned char[bytes > 0 ? bytes : 1]);
            bytes_ = at_ ? bytes : 0;
        }
        return at_.get();
    }

private:
    std::unique_ptr<unsigned char[]> at_;
    std::size_t bytes_ = 0;
};

struct options {
    std::int32_t threads = 1;    /* at most so many; more than 1 need OpenMP */
    memory *workspace = nullptr; /* null: of the call's own */
};

namespace detail {

/* An extent that the kernel's head asks for, and how it is written there. */
struct extent {
    std::uint64_t is;
    const char *text;
};

/* What `others` times it is `value`; what is no whole number is found when shapes are compared. */
constexpr std::uint64_t divide(std::uint64_t value, std::uint64_t others)
{
    return others == 0                             ? 0
           : others == static_cast<std::uint64_t>(-1) ? 0 - value
                                                   : static_cast<std::uint64_t>(static_cast<std::int64_t>(value) /
                                                                                static_cast<std::int64_t>(others));
}

/* The arguments of one call, compared with the kernel's head. */
class arguments {
public:
    explicit arguments(const char *kernel) : kernel_(kernel) {}

    template <class T, std::size_t R>
    void take(const char *name, const view<T, R> &v, std::initializer_list<extent> want)
    {
        std::size_t axis = 0;
        for (const extent &e : want) {
            if (v.extent(axis) != e.is) {
                fail(TDSL_E_SHAPE, std::string("extent of axis ") + std::to_string(axis) + " of " + name + " is " +
                                       std::to_string(v.extent(axis)) + ", the kernel's " + e.text + " is " +
                                       std::to_string(static_cast<std::int64_t>(e.is)));
            }
            axis++;
        }
        if (!v.in_order()) {
            fail(TDSL_E_STRIDE, std::string(name) + " is not in C order, without gaps");
        }
        take_bytes(name, v.data(), v.size() * sizeof(T), !std::is_const_v<T>);
    }
    template <class T> void take(const char *name, T &number) { take_bytes(name, &number, sizeof(T), !std::is_const_v<T>); }

    /* need(threads) -> bytes of workspace; call(workspace, bytes, threads) -> status. */
    template <class Need, class Call> outcome run(const options &how, Need need, Call call)
    {
        if (failure_.status != TDSL_OK) {
            return wrong();
        }
        const std::int32_t count = how.threads > 1 ? how.threads : 1;
        const std::size_t bytes = need(count);
        if (bytes == SIZE_MAX) {
            fail(TDSL_E_OVERFLOW, "an extent is below 0, or an array of these extents has no size");
            return wrong();
        }
        memory own;
        void *workspace = bytes == 0 ? nullptr : (how.workspace != nullptr ? *how.workspace : own).hold(bytes);
        if (workspace == nullptr && bytes > 0) {
            fail(TDSL_E_MEMORY, "no memory for a workspace of " + std::to_string(bytes) + " bytes");
            return wrong();
        }
        tdsl_threads threads = {};
        threads.count = count;
        const tdsl_status status = call(workspace, bytes, &threads);
        if (status != TDSL_OK) {
            fail(status, "status " + std::to_string(status));
            return wrong();
        }
        return outcome();
    }

private:
    struct range {
        const char *name;
        const unsigned char *from, *to;
        bool written;
    };
    static constexpr std::size_t most = 128; /* C promises no more parameters */

    void fail(tdsl_status status, const std::string &what)
    {
        if (failure_.status == TDSL_OK) {
            failure_.status = status;
            failure_.message = std::string(kernel_) + ": " + what;
        }
    }
    outcome wrong() const
    {
#if defined(__cpp_lib_expected)
        return std::unexpected(failure_);
#else
        return outcome(failure_);
#endif
    }
    /* A result overlaps nothing. */
    void take_bytes(const char *name, const void *data, std::size_t bytes, bool written)
    {
        const auto *from = static_cast<const unsigned char *>(data);
        const std::less<const unsigned char *> before;
        if (data == nullptr && bytes > 0) {
            fail(TDSL_E_ARGUMENT, std::string(name) + " is null");
            return;
        }
        for (std::size_t i = 0; bytes > 0 && i < n_; i++) {
            const range &other = ranges_[i];
            if ((written || other.written) && before(from, other.to) && before(other.from, from + bytes)) {
                fail(TDSL_E_OVERLAP, std::string(name) + " overlaps " + other.name);
            }
        }
        if (bytes > 0 && n_ < most) {
            ranges_[n_++] = {name, from, from + bytes, written};
        }
    }

    const char *kernel_;
    failure failure_;
    range ranges_[most];
    std::size_t n_ = 0;
};

} // namespace detail
} // namespace tdsl

#endif
