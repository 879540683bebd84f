//! `Display` of one value, and `Debug` of secrets.

/// Implements `Display` as that of a value, which the name between the bars refers to.
macro_rules! display {
    ($kind:ident, |$this:ident| $value:expr) => {
        impl ::std::fmt::Display for $kind {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                let $this = self;
                ::std::fmt::Display::fmt(&$value, f)
            }
        }
    };
}

/// Implements `Debug` as a text, for types whose content must not reach logs.
macro_rules! debug_as {
    ($kind:ident, |$this:ident| $value:expr) => {
        impl ::std::fmt::Debug for $kind {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                let $this = self;
                ::std::fmt::Display::fmt(&$value, f)
            }
        }
    };
}

pub(crate) use {debug_as, display};
