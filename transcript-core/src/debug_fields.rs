//! `Debug` of a part of a type.

/// Implements `Debug` with these fields only, for a type whose other fields are secrets, long texts or no `Debug`.
///
/// A field may have an expression of the value, which the name between the bars refers to.
///
/// ```
/// struct Login {
///     name: String,
///     password: String,
/// }
/// transcript_core::debug_fields!(Login |login| { name, has_password: !login.password.is_empty() });
///
/// let login = Login { name: "ann".to_owned(), password: "secret".to_owned() };
/// assert_eq!(format!("{login:?}"), "Login { name: \"ann\", has_password: true, .. }");
/// ```
#[macro_export]
macro_rules! debug_fields {
    (@value $this:ident $field:ident) => {
        &$this.$field
    };
    (@value $this:ident $field:ident $value:expr) => {
        &$value
    };
    ($kind:ident $(|$this:ident|)? { $($field:ident $(: $value:expr)?),* }) => {
        impl ::std::fmt::Debug for $kind {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                $(let $this = self;)?
                f.debug_struct(stringify!($kind))
                    $(.field(stringify!($field), $crate::debug_fields!(@value self $field $($value)?)))*
                    .finish_non_exhaustive()
            }
        }
    };
}
