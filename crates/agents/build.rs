//! Builds the eBPF programs under `bpf/` into skeletons (feature `bpf`).

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "bpf")]
    bpf::build();
}

#[cfg(feature = "bpf")]
mod bpf {
    use libbpf_cargo::SkeletonBuilder;
    use std::env;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    const WHAT_TO_INSTALL: &str = "\
        building the eBPF programs needs clang (11 or newer), libelf-dev, zlib1g-dev and pkg-config\n\
        (Debian and Ubuntu: apt-get install clang libelf-dev zlib1g-dev pkg-config); set CLANG to use a clang of another\n\
        name, or build without them: cargo build --no-default-features";

    pub fn build() {
        println!("cargo::rerun-if-env-changed=CLANG");
        let sources = Path::new(&env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../bpf");
        for source in [
            "rwnd.h",
            "rwnd_flow.h",
            "rwnd.bpf.c",
            "tproxy.bpf.c",
            "divert.bpf.c",
            "bounds.bpf.c",
            "cubic.h",
            "bbr.h",
            "pbe_option.h",
            "pbe_law.h",
            "pbe_sender.bpf.c",
            "pbe_receiver.h",
            "pbe_receiver.bpf.c",
            "cong_state.bpf.c",
            "relay.bpf.c",
            "hop_delay.bpf.c",
        ] {
            println!("cargo::rerun-if-changed={}", sources.join(source).display());
        }
        let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
        for law in lasthop_laws::SHARED {
            std::fs::write(out.join(format!("{}_shared.h", law.name)), law.header()).expect("cargo made the directory");
        }
        let clang = clang().unwrap_or_else(|| panic!("no clang found: {WHAT_TO_INSTALL}"));
        let tests = Path::new(&env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("tests/bpf");
        for name in ["watch", "pbe_law"] {
            println!("cargo::rerun-if-changed={}", tests.join(format!("{name}.bpf.c")).display());
        }
        let own =
            ["rwnd", "tproxy", "divert", "bounds", "cong_state", "relay", "hop_delay", "pbe_sender", "pbe_receiver"]
                .map(|name| (&sources, name));
        // What watches the others in tests, and what runs a part of them alone.
        for (folder, name) in own.into_iter().chain(["watch", "pbe_law"].map(|name| (&tests, name))) {
            let built = SkeletonBuilder::new()
                .source(folder.join(format!("{name}.bpf.c")))
                .clang(&clang)
                .clang_args(include_paths(&out).iter().map(String::as_str).chain(["-Wall", "-Werror", "-mcpu=v3"]))
                .build_and_generate(out.join(format!("{name}.skel.rs")));
            if let Err(error) = built {
                panic!("{clang} could not build {name}.bpf.c: {error:#}\n{WHAT_TO_INSTALL}");
            }
        }
    }

    /// Debian calls it `clang-14` if only a versioned package is installed.
    fn clang() -> Option<String> {
        if let Ok(named) = env::var("CLANG") {
            return Some(named);
        }
        let names =
            std::iter::once("clang".to_owned()).chain((11..=99).rev().map(|version| format!("clang-{version}")));
        names.into_iter().find(|name| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success()))
    }

    /// `generated` holds headers that the laws give. On Debian `asm/types.h` stands in a directory named after the architecture,
    /// which clang does not search when it compiles for BPF.
    fn include_paths(generated: &Path) -> Vec<String> {
        let arch = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
        let multiarch = format!("/usr/include/{arch}-linux-gnu");
        let mut paths = vec![format!("-I{}", generated.display())];
        paths.extend(Path::new(&multiarch).is_dir().then(|| format!("-I{multiarch}")));
        paths
    }
}
