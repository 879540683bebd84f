//! `Debug` without secrets.

/// Implements `Debug` with the name only, for types with a key, an address or the app's own code.
macro_rules! redacted_debug {
    ($($name:ident),*) => {$(
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )*};
}

pub(crate) use redacted_debug;
