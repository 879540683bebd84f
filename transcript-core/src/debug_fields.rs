//! `Debug` of a part of a type.

/// Implements `Debug` with these fields only, for a type whose other fields are secrets, long texts or no `Debug`.
///
/// ```
/// struct Login {
///     name: String,
///     password: String,
/// }
/// transcript_core::debug_fields!(Login { name });
///
/// let login = Login { name: "ann".to_owned(), password: "secret".to_owned() };
/// assert_eq!(format!("{login:?}"), "Login { name: \"ann\", .. }");
/// # drop(login.password);
/// ```
#[macro_export]
macro_rules! debug_fields {
    ($kind:ident { $($field:ident),* }) => {
        impl ::std::fmt::Debug for $kind {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_struct(stringify!($kind))
                    $(.field(stringify!($field), &self.$field))*
                    .finish_non_exhaustive()
            }
        }
    };
}
