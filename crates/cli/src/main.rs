//! The `lasthop` command.

fn main() {
    println!("lasthop {}", env!("CARGO_PKG_VERSION"));
}
