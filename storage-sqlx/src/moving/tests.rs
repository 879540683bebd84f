//! No table is forgotten, whoever adds one.

use verbatim_tests_postgres::Cluster;

use super::{
    PARTS, files, server,
    side::{Role, Side},
    table::NOT_CARRIED,
};
use crate::PostgresOptions;

#[tokio::test]
async fn every_table_is_carried_or_known_not_to_be() {
    let (folder, database) = (tempfile::tempdir().unwrap(), Cluster::shared().database().unwrap());
    let mut tables = Vec::new();
    for part in PARTS {
        let file = folder.path().join(part.name);
        let mut file = files::Files::open(part, &file, Role::Target).await.unwrap();
        let there = file.tables().await.unwrap();
        for table in part.all() {
            assert!(there.iter().any(|name| name == table.name), "{} is in no file", table.name);
        }
        tables.extend(there);
        let options = PostgresOptions::new(&database.url);
        let mut server = server::Server::open(part, &options, Role::Target).await.unwrap();
        let there = server.tables().await.unwrap();
        for table in part.all() {
            assert!(there.iter().any(|name| name == table.name), "{} is on no server", table.name);
        }
        tables.extend(there);
    }
    for name in tables {
        let is_carried = PARTS.iter().flat_map(|part| part.all()).any(|table| table.name == name);
        assert!(
            is_carried != NOT_CARRIED.contains(&name.as_str()),
            "{name}: is it to be copied? See moving/table.rs"
        );
    }
}
