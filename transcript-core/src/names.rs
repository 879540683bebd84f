//! Names of the values of an enum.

/// Implements `ALL`, `as_str` and, under the given name, the inverse of `as_str` from one list of
/// names. A doc comment describes their order.
macro_rules! names {
    ($(#[$order:meta])* $kind:ident $(, $inverse:ident)? { $($variant:ident = $name:literal),+ $(,)? }) => {
        impl $kind {
            /// All values, in order.
            $(#[$order])*
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// The permanent name, on the wire, in storage and in metrics.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            $(
                /// The value with this name; `None` if there is none.
                pub fn $inverse(name: &str) -> Option<Self> {
                    Self::ALL.into_iter().find(|value| value.as_str() == name)
                }
            )?
        }
    };
}

pub(crate) use names;
