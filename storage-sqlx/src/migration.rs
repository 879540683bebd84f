//! Migrations of a schema.

/// One migration of a schema. A published migration never changes.
#[derive(Debug)]
pub(crate) struct Migration {
    /// The schema version after it: 1 for the first.
    pub(crate) version: u32,
    /// The name of its file.
    pub(crate) name: &'static str,
    /// Its statements.
    pub(crate) sql: &'static str,
}

/// The schema version after these migrations.
pub(crate) fn last_version(migrations: &[Migration]) -> u32 {
    migrations.last().map_or(0, |last| last.version)
}

/// The migrations in the files of a folder, in order.
macro_rules! migrations {
    ($folder:literal: $($version:literal $name:literal,)*) => {
        &[$($crate::migration::Migration {
            version: $version,
            name: $name,
            sql: include_str!(concat!("../../migrations/", $folder, "/", $name, ".sql")),
        }),*]
    };
}

pub(crate) use migrations;
