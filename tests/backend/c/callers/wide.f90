! SPDX-License-Identifier: Apache-2.0
! What callers.py compiles with wide.f90: results, and what must be refused, one line each.
program main
  use, intrinsic :: iso_c_binding
  use wide_kernels
  implicit none
  real(c_double) :: in(3, 6), out(6), acc(9), x(4), s(4), one, a(2, 3), b(2, 2), g(2, 2), m(3, 2)
  complex(c_float_complex) :: types(3), z(3)
  logical(c_bool) :: sized(2), any(2)
  integer(c_int32_t) :: sizes(2)
  integer(c_int16_t) :: h(2)
  integer(c_int64_t) :: total
  integer :: i, status

  m = 1
  if (command_argument_count() > 0) call square(m, x(:2), s(:2))
  in = reshape([(real(i, c_double), i=0, 17)], [3, 6])
  types = [(1., 2.), (3., 4.), (5., 6.)]
  sized = [.true._c_bool, .false._c_bool]
  sizes = [-1, 4]
  acc = [0, 9, 1, 9, 2, 9, 3, 9, 4]
  h = [0_c_int16_t, int(z'3c00', c_int16_t)]
  total = 10
  call wide(in, types, sized, sizes, 2._c_double, (0., 1.), .true._c_bool, acc(::2), h, total, out, z, any)
  print '(9(i0, " "))', int(out(1)), int(out(6)), int(real(z(3))), int(aimag(z(3))), int(acc(1)), int(acc(9)), &
    merge(1, 0, any), total
  call wide(in(:, :5), types, sized, sizes, 2._c_double, (0., 1.), .true._c_bool, acc(::2), h, total, out, z, any, &
    status=status)
  print '(i0)', status
  call wide(in, types, sized, sizes, 2._c_double, (0., 1.), .true._c_bool, acc(:4), h, total, out, z, any, status=status)
  print '(i0)', status

  x = [1, 2, 3, 4]
  call hidden(3_c_int64_t, 5_c_int64_t, x, s, status=status)
  print '(i0)', status
  call hidden(3_c_int64_t, 7_c_int64_t, x, s, status=status)
  print '(i0)', status
  a = reshape([1, 2, 3, 4, 5, 6], [2, 3])
  b = reshape([1, 0, 1, 1], [2, 2])
  call fixed(reshape(a, [3, 2]), one)
  print '(2(i0, " "))', int(s(4)), int(one)
  call square(b, x(:2), s(:2), status=status)
  print '(i0)', status
  call apart(x, x, s(:1), status=status)
  print '(i0)', status
  call apart(x, x, s(:2), status=status)
  print '(i0)', status
  call large(a, b, g, threads=2, status=status)
  print '(i0)', status
  call large(b, a, g, status=status)
  print '(i0)', status
  print '(2(i0, " "))', int(g(1, 1)), int(g(2, 2))
end program
