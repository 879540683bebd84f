//! Checks that the copy covers every table.

use verbatim_tests_postgres::Cluster;

use super::{
    PARTS, files, server,
    side::{CopyRole, CopySide},
    table::NOT_CARRIED,
};
use crate::PostgresOptions;

#[tokio::test]
async fn copy_covers_every_table() {
    let (folder, database) = (tempfile::tempdir().unwrap(), Cluster::shared().database().unwrap());
    let mut tables = Vec::new();
    for part in PARTS {
        let file = folder.path().join(part.name);
        let mut file = files::SqliteSide::open(part, &file, CopyRole::Target).await.unwrap();
        let file: &mut dyn CopySide = &mut file;
        file.prepare(CopyRole::Target).await.unwrap();
        let names = file.tables().await.unwrap();
        for table in part.all() {
            assert!(names.iter().any(|name| name == table.name), "{} is in no file", table.name);
        }
        tables.extend(names);
        let options = PostgresOptions::new(&database.url);
        let mut server = server::PostgresSide::open(part, &options, CopyRole::Target).await.unwrap();
        let server: &mut dyn CopySide = &mut server;
        server.prepare(CopyRole::Target).await.unwrap();
        let names = server.tables().await.unwrap();
        for table in part.all() {
            assert!(names.iter().any(|name| name == table.name), "{} is on no server", table.name);
        }
        tables.extend(names);
    }
    for name in tables {
        let is_copied = PARTS.iter().flat_map(|part| part.all()).any(|table| table.name == name);
        assert!(
            is_copied != NOT_CARRIED.contains(&name.as_str()),
            "{name}: copy it or list it in NOT_CARRIED, see copy/table.rs"
        );
    }
}
