//! Laws that eBPF programs decide by as well: what a program shares with its law.
//!
//! Parameters and constants are declared by the law alone. The build of the programs writes
//! [`Shared::header`] for them, and an agent fills a program's parameters with [`Shared::words`].

use crate::param::{Kind, Param, Parameters, Value};

/// What a law shares with its program.
#[derive(Clone, Copy, Debug)]
pub struct Shared {
    /// The program's name for the law: `pbe` makes `pbe_shared.h` and `struct pbe_params`.
    pub name: &'static str,
    /// The law's parameters.
    pub table: &'static [Param],
    /// Keys of those that the program reads.
    pub keys: &'static [&'static str],
    /// The law's constants, by their names in C and in the program's units.
    pub constants: &'static [(&'static str, u64)],
}

impl Shared {
    /// The parameters that the program reads, as the law's table has them, in the order of `keys`.
    pub fn params(&self) -> impl Iterator<Item = &'static Param> {
        self.keys.iter().filter_map(|key| self.table.iter().find(|param| param.key == *key))
    }

    /// What the program's parameters are in `law`: a word for each field of the struct, in its order.
    pub fn words(&self, law: &impl Parameters) -> Vec<u64> {
        self.params().filter_map(|param| Some(word(param.kind, law.get(param.key)?))).collect()
    }

    /// The header for the program: the constants, and a struct with a field for each parameter, if there are any.
    pub fn header(&self) -> String {
        let (name, guard) = (self.name, self.name.to_uppercase());
        let define = |(constant, value): &(&str, u64)| format!("#define {constant} {value}\n");
        let field = |param: &Param| {
            let (meaning, field) = (param.meaning(), param.key.replace('-', "_"));
            format!("\t/* {meaning} In {}. */\n\t__u64 {field};\n", unit(param.kind))
        };
        let (constants, fields) = (self.constants.iter().map(define), self.params().map(field));
        let (constants, fields) = (constants.collect::<String>(), fields.collect::<String>());
        let params = if fields.is_empty() { fields } else { format!("\nstruct {name}_params {{\n{fields}}};\n") };
        format!(
            "/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */\n\
             /* Generated from the declaration of the law in crates/laws. */\n\
             #ifndef LASTHOP_{guard}_SHARED_H\n#define LASTHOP_{guard}_SHARED_H\n\n#include <linux/types.h>\n\n\
             {constants}{params}\n#endif\n"
        )
    }
}

/// What a field of this kind counts.
fn unit(kind: Kind) -> String {
    match kind {
        Kind::Time => "microseconds".into(),
        Kind::Rate => "octets a second".into(),
        Kind::Bytes => "octets".into(),
        Kind::Number => "millionths".into(),
        Kind::Count => "whole numbers".into(),
        Kind::Flag => "0 or 1".into(),
        Kind::Word(words) => {
            let names = words.words.iter().enumerate().map(|(place, (word, _))| format!("{place}: {word}"));
            format!("words ({})", names.collect::<Vec<_>>().join(", "))
        }
    }
}

/// A value in the unit of its kind. Negative numbers are 0.
fn word(kind: Kind, value: Value) -> u64 {
    match value {
        Value::Time(span) => span.as_nanos() / 1000,
        Value::Rate(rate) => rate.as_bps() / 8,
        Value::Bytes(bytes) => bytes.get(),
        Value::Number(number) => (number * 1e6).round() as u64,
        Value::Count(count) => count,
        Value::Flag(flag) => u64::from(flag),
        Value::Word(word) => match kind {
            Kind::Word(words) => words.words.iter().position(|(known, _)| *known == word).unwrap_or(0) as u64,
            _ => 0,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pbe::Params;

    const SHARED: Shared = Shared {
        name: "some",
        table: Params::TABLE,
        keys: &["translation", "overhead", "keep-probing", "headroom", "most"],
        constants: &[("ROUNDS", 10)],
    };

    #[test]
    fn a_header_has_a_field_for_each_parameter_and_its_word() {
        assert_eq!(SHARED.words(&Params::default()), [0, 68_000, 1, 8_000, 250_000_000]);
        let header = SHARED.header();
        for text in [
            "#define ROUNDS 10\n\nstruct some_params {\n\t/* How a cell's blocks become TCP capacity. In words (0: of-goodput,",
            "\t__u64 translation;\n\t/* Headers over payload, where not measured, and at most. In millionths. */\n",
            "category 20). In octets a second. */\n\t__u64 most;\n};\n",
        ] {
            assert!(header.contains(text), "{header}");
        }
        assert_eq!(header.matches("__u64").count(), SHARED.keys.len());
    }
}
