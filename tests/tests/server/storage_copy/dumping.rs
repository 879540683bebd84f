//! The complete content of both database files, byte by byte.

use std::collections::BTreeMap;

use anyhow::Result;
use tempfile::TempDir;

use crate::server::harness::sqlite;

/// Each table with its rows in order; every value with its type and in hexadecimal digits.
pub(super) fn dump(data: &TempDir) -> Result<BTreeMap<String, String>> {
    let mut dumped = BTreeMap::new();
    for name in ["verbatim.db", "archive.db"] {
        let file = data.path().join(name);
        // The caches in front of the old servers are not those of the new ones, so their purges are not copied. The
        // search index is built again.
        let tables = sqlite(
            &file,
            "SELECT name FROM sqlite_schema WHERE type = 'table'
                AND name NOT IN ('schema_version', 'changed_videos', 'unindexed_videos', 'sqlite_sequence')
                ORDER BY name",
        )?;
        for table in tables.lines() {
            let query = format!(
                "SELECT group_concat('typeof(\"' || name || '\") || \":\" || hex(\"' || name || '\")', ' || \"|\" || ')
                 FROM pragma_table_info('{table}')"
            );
            let columns = sqlite(&file, &query)?.replace("\":\"", "':'").replace("\"|\"", "'|'");
            let rows = sqlite(&file, &format!("SELECT {columns} FROM {table} ORDER BY 1"))?;
            dumped.insert(table.to_owned(), rows);
        }
        // The migrations are the same, but not the times at which they ran.
        let versions = sqlite(&file, "SELECT version, name FROM schema_version ORDER BY version")?;
        dumped.insert(format!("versions of {name}"), versions);
    }
    Ok(dumped)
}
