//! Report about the stores for operators, without a change to them.

use transcript_core::Result;

use crate::options::StorageOptions;

/// What a store contains, and whether it fits its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageReport {
    /// The file, or host and database.
    pub location: String,
    /// What is there, in a few words.
    pub state: String,
    /// What the operator should change.
    pub warning: Option<String>,
}

/// Reads what is in the stores. Files are not opened; databases are read only.
///
/// # Errors
/// As [`crate::Verbatim::open`] for a database that cannot be reached.
pub async fn inspect_storage(options: &StorageOptions) -> Result<Vec<StorageReport>> {
    match options {
        StorageOptions::Memory | StorageOptions::BoundedMemory(_) => Ok(Vec::new()),
        StorageOptions::Files { main, archive } => Ok(vec![inspect_file(main), inspect_file(archive)]),
        StorageOptions::ArchiveFile(archive) => Ok(vec![inspect_file(archive)]),
        #[cfg(feature = "postgres")]
        StorageOptions::Postgres { main, archive } if main == archive => {
            Ok(vec![database::inspect(main).await?])
        }
        #[cfg(feature = "postgres")]
        StorageOptions::Postgres { main, archive } => {
            Ok(vec![database::inspect(main).await?, database::inspect(archive).await?])
        }
        #[cfg(feature = "postgres")]
        StorageOptions::ArchivePostgres(archive) => Ok(vec![database::inspect(archive).await?]),
        #[cfg(not(feature = "postgres"))]
        StorageOptions::Postgres { .. } | StorageOptions::ArchivePostgres(_) => {
            Err(transcript_core::Error::unsupported(
                "this build cannot store in PostgreSQL: it lacks the feature postgres",
            ))
        }
    }
}

fn inspect_file(file: &std::path::Path) -> StorageReport {
    let state = match file.metadata() {
        Ok(metadata) => format!("{} bytes", metadata.len()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            "missing: created by the first start".to_owned()
        }
        Err(error) => format!("unreadable: {error}"),
    };
    StorageReport { location: file.display().to_string(), state, warning: None }
}

#[cfg(feature = "postgres")]
mod database {
    use transcript_core::Result;

    use super::StorageReport;
    use crate::{
        options::DatabaseOptions,
        storage::{connection_warning, postgres_options},
    };

    pub(super) async fn inspect(options: &DatabaseOptions) -> Result<StorageReport> {
        let report = storage_sqlx::inspect_database(postgres_options(options)).await?;
        let schema = |(stored, known): (i64, i64)| match stored {
            0 => "no tables yet".to_owned(),
            stored if stored == known => format!("schema {stored}"),
            stored => format!("schema {stored}, this program uses {known}"),
        };
        let mut state = format!(
            "PostgreSQL {}; accounts and ledger: {}; transcripts: {}",
            report.server_version,
            schema(report.main_schema),
            schema(report.archive_schema)
        );
        if let Some(limit) = report.connections {
            state.push_str(&format!("; {} connections permitted", limit.permitted));
        }
        let read_only = report
            .is_read_only
            .then(|| format!("{} is read-only: connect to the server that accepts writes", report.name));
        let warning = read_only.or_else(|| report.connections.and_then(connection_warning));
        Ok(StorageReport { location: report.name, state, warning })
    }
}
