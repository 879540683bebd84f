//! What must not be printed.

/// Prints of a type no more than its name: it holds a key, an address, or the app's own code.
macro_rules! unsaid {
    ($($name:ident),*) => {$(
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )*};
}

pub(crate) use unsaid;
