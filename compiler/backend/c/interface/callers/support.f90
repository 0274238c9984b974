! SPDX-License-Identifier: Apache-2.0

  subroutine begin_call(state, name, threads)
    type(call_state), intent(inout) :: state
    character(*), intent(in) :: name
    integer, intent(in), optional :: threads
    state%name = name
    state%threads%count = 1
    if (present(threads)) state%threads%count = int(max(1, threads), c_int32_t)
  end subroutine

  ! Is the argument of the shape that the kernel's head asks for? Axes are counted as Fortran does, from 1.
  subroutine take(state, name, is, want, text)
    type(call_state), intent(inout) :: state
    character(*), intent(in) :: name, text
    integer(c_int64_t), intent(in) :: is(:), want(:)
    character(200) :: message
    integer :: axis
    do axis = 1, size(is)
      if (is(axis) /= want(axis)) then
        write (message, '(a, i0, a, i0, a, i0)') 'extent of axis ', axis, ' of ' // name // ' is ', is(axis), &
          ', the kernel''s ' // text // ' makes it ', want(axis)
        call fail(state, -2_c_int32_t, trim(message))
      end if
    end do
  end subroutine

  subroutine fail(state, status, message)
    type(call_state), intent(inout) :: state
    integer(c_int32_t), intent(in) :: status
    character(*), intent(in) :: message
    if (state%status == 0) then
      state%status = status
      state%message = message
    end if
  end subroutine

  subroutine prepare(state, bytes)
    type(call_state), intent(inout) :: state
    integer(c_size_t), intent(in) :: bytes
    integer :: failed
    if (state%status /= 0) return
    if (bytes == -1) then
      call fail(state, -7_c_int32_t, 'an extent is below 0, or an array of these extents has no size')
      return
    end if
    allocate (state%workspace(max(bytes, 1_c_size_t)), stat=failed)
    if (failed /= 0) call fail(state, -10_c_int32_t, 'no memory for the workspace')
  end subroutine

  ! Without `status` a failure ends the program, with a sentence that names the argument.
  subroutine end_call(state, status)
    use, intrinsic :: iso_fortran_env, only: error_unit
    type(call_state), intent(inout) :: state
    integer, intent(out), optional :: status
    if (present(status)) then
      status = int(state%status)
    else if (state%status /= 0) then
      if (.not. allocated(state%message)) state%message = 'the call failed'
      write (error_unit, '(a, ": ", a, " (status ", i0, ")")') state%name, state%message, state%status
      error stop 1
    end if
  end subroutine

  ! What `others` times it is `value`; what is no whole number is found when shapes are compared.
  pure integer(c_int64_t) function divide(value, others)
    integer(c_int64_t), intent(in) :: value, others
    divide = 0
    if (others /= 0) divide = value / others
  end function
