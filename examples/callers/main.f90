! SPDX-License-Identifier: Apache-2.0
! Kernels from Fortran: A[m][k] of the kernel is a(k, m), the same bytes. Sections of arrays may have gaps.
program main
  use smooth_kernels
  implicit none
  integer, parameter :: real64 = selected_real_kind(15)
  real(real64) :: a(2, 3), b(2, 2), g(2, 2), x(5), w(2), y(8), energy
  integer :: status

  a = reshape([1, 2, 3, 4, 5, 6], [2, 3])
  b = reshape([1, 0, 1, 1], [2, 2])
  call gram(a, b, g)
  print '(3(f0.0, " "), f0.0)', g

  x = [1, 2, 3, 4, 5]
  w = [1, 1]
  call smooth(x, w, y(::2), energy)
  print '(3(f0.0, " "), f0.0, ", ", f0.0)', y(::2), energy

  call gram(b, a, g, status=status)
  print '("status ", i0)', status
end program
