//! Statements that differ between the databases.

/// The text of a statement in each database.
///
/// Both number their parameters: `$1`. A text for SQLite may leave out parameters that PostgreSQL has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Statement {
    #[cfg(feature = "sqlite")]
    pub(crate) sqlite: &'static str,
    #[cfg(feature = "postgres")]
    pub(crate) postgres: &'static str,
}

/// A [`Statement`] with two texts. A plain text is the same for both databases.
macro_rules! sql {
    (sqlite: $sqlite:expr, postgres: $postgres:expr $(,)?) => {
        $crate::sql::Statement {
            #[cfg(feature = "sqlite")]
            sqlite: $sqlite,
            #[cfg(feature = "postgres")]
            postgres: $postgres,
        }
    };
}
pub(crate) use sql;

impl From<&'static str> for Statement {
    fn from(text: &'static str) -> Self {
        sql! { sqlite: text, postgres: text }
    }
}
