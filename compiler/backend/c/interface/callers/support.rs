// SPDX-License-Identifier: Apache-2.0
// What the wrappers of a file share. Edition 2018 or 2021; nothing but the standard library.

/// What went wrong: a TDSL_E_... of the kernel's header, and a sentence with the argument's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub status: i32,
    pub message: String,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

use std::num::Wrapping;

/// What `others` times it is `value`; what is no whole number is found when shapes are compared.
#[allow(dead_code)]
fn divide(value: Wrapping<u64>, others: Wrapping<u64>) -> Wrapping<u64> {
    let (a, b) = (value.0 as i64, others.0 as i64);
    Wrapping(if b == 0 { 0 } else { a.wrapping_div(b) as u64 })
}

fn wrong(kernel: &str, status: i32, what: String) -> Error {
    Error { status, message: format!("{}: {}", kernel, what) }
}

/// Is the argument of the shape that the kernel's head asks for, and as long as its shape says?
#[allow(dead_code)]
fn take(kernel: &str, name: &str, len: usize, shape: &[usize], want: &[(Wrapping<u64>, &str)]) -> Result<(), Error> {
    for (axis, (&is, asked)) in shape.iter().zip(want).enumerate() {
        if is as u64 != (asked.0).0 {
            let text = format!("extent of axis {} of {} is {}, the kernel's {} is {}", axis, name, is, asked.1, (asked.0).0 as i64);
            return Err(wrong(kernel, -2, text));
        }
    }
    let elements = if shape.contains(&0) { Some(0) } else { shape.iter().try_fold(1usize, |n, &extent| n.checked_mul(extent)) };
    if elements != Some(len) {
        return Err(wrong(kernel, -2, format!("{} has {} elements, its shape is {:?}", name, len, shape)));
    }
    Ok(())
}

fn run(
    kernel: &str,
    threads: i32,
    need: impl FnOnce(i32) -> usize,
    call: impl FnOnce(*mut u8, usize, *const c::Threads) -> i32,
) -> Result<(), Error> {
    let threads = c::Threads { count: threads.max(1), reserved: 0, run: None, pool: std::ptr::null_mut() };
    let bytes = need(threads.count);
    if bytes == usize::MAX {
        return Err(wrong(kernel, -7, String::from("an extent is below 0, or an array of these extents has no size")));
    }
    let mut workspace: Vec<u8> = Vec::new();
    if workspace.try_reserve_exact(bytes).is_err() {
        return Err(wrong(kernel, -10, format!("no memory for a workspace of {} bytes", bytes)));
    }
    match call(workspace.as_mut_ptr(), bytes, &threads) {
        0 => Ok(()),
        status => Err(wrong(kernel, status, format!("status {}", status))),
    }
}
