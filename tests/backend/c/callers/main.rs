// SPDX-License-Identifier: Apache-2.0
// What callers.py compiles with wide.rs: results, and what must be refused, one line each.
mod wide;

fn said(done: Result<(), wide::Error>) {
    match done {
        Ok(()) => println!("done"),
        Err(error) => println!("{} {}", error.status, error),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let numbers: Vec<f64> = (0..18).map(f64::from).collect();
    let types = [[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]];
    let (size, sizes, h) = ([true, false], [-1, 4], [0u16, 0x3c00]);
    let (mut acc, mut total) = ([0., 1., 2., 3., 4.], 10i64);
    let (mut out, mut z, mut any) = ([0.; 6], [[0f32; 2]; 3], [false; 2]);
    wide::wide(
        (&numbers, [6, 3]), (&types, [3]), (&size, [2]), (&sizes, [2]), 2., [0., 1.], true,
        (&mut acc, [5]), (&h, [2]), &mut total, (&mut out, [6]), (&mut z, [3]), (&mut any, [2]),
    )?;
    println!("{} {}, {} {}, {} {}, {} {}, {}", out[0], out[5], z[2][0], z[2][1], acc[0], acc[4], any[0] as i32, any[1] as i32, total);
    said(wide::wide(
        (&numbers[..15], [5, 3]), (&types, [3]), (&size, [2]), (&sizes, [2]), 2., [0., 1.], true,
        (&mut acc, [5]), (&h, [2]), &mut total, (&mut out, [6]), (&mut z, [3]), (&mut any, [2]),
    ));
    said(wide::wide(
        (&numbers, [6, 3]), (&types, [3]), (&size, [2]), (&sizes, [2]), 2., [0., 1.], true,
        (&mut acc[..4], [4]), (&h, [2]), &mut total, (&mut out, [6]), (&mut z, [3]), (&mut any, [2]),
    ));

    let (x, mut s, mut one) = ([1., 2., 3., 4.], [0.; 4], 0.);
    said(wide::hidden(3, 5, (&x, [4]), (&mut s, [4])));
    said(wide::hidden(3, 6, (&x, [4]), (&mut s, [4])));
    said(wide::hidden(3, 7, (&x, [4]), (&mut s, [4])));
    wide::fixed((&[1., 2., 3., 4., 5., 6.], [2, 3]), &mut one)?;
    println!("{} {}", s[3], one);
    said(wide::square((&x, [2, 2]), (&x[..2], [2]), (&mut s[..2], [2])));
    said(wide::square((&x, [2, 3]), (&x[..2], [2]), (&mut s[..2], [2])));
    said(wide::apart((&x, [4]), (&x, [4]), (&mut s[..1], [1])));
    said(wide::apart((&x, [4]), (&x, [4]), (&mut s[..2], [2])));

    let (a, b, mut g) = ([1., 2., 3., 4., 5., 6.], [1., 0., 1., 1.], [0.; 4]);
    said(wide::large_threads(2, (&a, [3, 2]), (&b, [2, 2]), (&mut g, [2, 2])));
    said(wide::large((&b, [2, 2]), (&a, [3, 2]), (&mut g, [2, 2])));
    println!("{} {}", g[0], g[3]);

    // A slice that is shorter than its shape, or whose shape has no size.
    assert!(wide::large((&a[..5], [3, 2]), (&b, [2, 2]), (&mut g, [2, 2])).is_err());
    assert!(wide::large((&a[..0], [usize::MAX, usize::MAX]), (&b, [usize::MAX, 2]), (&mut g, [2, 2])).is_err());
    Ok(())
}
