// SPDX-License-Identifier: Apache-2.0
// Kernels from Rust: an array is a slice and its shape; what is wrong is an Err.
mod smooth;

fn main() -> Result<(), smooth::Error> {
    let (a, b, mut g) = ([1., 2., 3., 4., 5., 6.], [1., 0., 1., 1.], [0.; 4]);
    smooth::gram((&a, [3, 2]), (&b, [2, 2]), (&mut g, [2, 2]))?;
    println!("{} {} {} {}", g[0], g[1], g[2], g[3]);

    let (x, w, mut y, mut energy) = ([1., 2., 3., 4., 5.], [1., 1.], [0.; 4], 0.);
    smooth::smooth((&x, [5]), (&w, [2]), (&mut y, [4]), &mut energy)?;
    println!("{} {} {} {}, {}", y[0], y[1], y[2], y[3], energy);

    if let Err(error) = smooth::gram((&b, [2, 2]), (&a, [3, 2]), (&mut g, [2, 2])) {
        println!("{}", error);
    }
    Ok(())
}
