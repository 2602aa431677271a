//! Enums with a name for each variant, declared once.

/// Declares one: each variant with its documentation and its name. The enum has `ALL` and `name`.
///
/// ```
/// lasthop_units::named! {
///     /// A direction.
///     #[derive(Clone, Copy, PartialEq, Debug)]
///     pub enum Way {
///         /// Towards stations.
///         Down = "down",
///         /// From stations.
///         Up = "up",
///     }
/// }
///
/// assert_eq!(Way::ALL.map(Way::name), ["down", "up"]);
/// ```
#[macro_export]
macro_rules! named {
    ($(#[$of:meta])* $vis:vis enum $enum:ident { $( $(#[$of_variant:meta])* $variant:ident = $name:literal, )* }) => {
        $(#[$of])*
        $vis enum $enum {
            $( $(#[$of_variant])* $variant, )*
        }

        impl $enum {
            /// All of them, in the order of the declaration.
            pub const ALL: [$enum; [$($name),*].len()] = [$($enum::$variant),*];

            /// Its name in files, tables and on command lines.
            pub const fn name(self) -> &'static str {
                match self {
                    $( $enum::$variant => $name, )*
                }
            }
        }
    };
}
