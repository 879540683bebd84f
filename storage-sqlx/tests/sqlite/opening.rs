//! Opening: new files, old and new versions, concurrent opens, and every kind of wrong file.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use rusqlite::{Connection, types::FromSql};
use storage_sqlx::{SqliteArchive, SqliteOptions, SqliteStore};
use transcript_core::{
    Error, ErrorKind, PageRequest, Retry, Timestamp,
    archive::Archive,
    directory::SecretStore,
    ledger::Ledger,
    video::{Platform, VideoId},
};

/// A connection of another program.
pub(crate) fn foreign_connection(file: &Path) -> Connection {
    Connection::open(file).unwrap()
}

pub(crate) fn run(file: &Path, statement: &str) {
    foreign_connection(file).execute_batch(statement).unwrap();
}

/// The first value of a statement's first row.
pub(crate) fn value<T: FromSql>(connection: &Connection, statement: &str) -> T {
    connection.query_row(statement, [], |row| row.get(0)).unwrap()
}

/// The versions that an up-to-date main file records: one for each migration of the sources.
fn every_version() -> Vec<i64> {
    let migrations = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations/main");
    let count = fs::read_dir(migrations).unwrap().count();
    (1..=i64::try_from(count).unwrap()).collect()
}

/// The recorded versions of a file, each as often as it was recorded.
fn versions(file: &Path) -> Vec<i64> {
    let connection = foreign_connection(file);
    let mut statement = connection.prepare("SELECT version FROM schema_version ORDER BY version").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().collect::<rusqlite::Result<_>>().unwrap()
}

fn short_timeout(path: impl Into<PathBuf>) -> SqliteOptions {
    SqliteOptions { busy_timeout: Duration::from_millis(200), ..SqliteOptions::new(path) }
}

/// Checks the error of opening: its kind, the file name and the expected text in its message.
async fn check_rejected(file: &Path, kind: ErrorKind, expected: &str) -> Error {
    let error = SqliteStore::open(short_timeout(file)).await.unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.message().contains(expected), "{error}");
    let name = file.file_name().unwrap().to_str().unwrap();
    assert!(error.message().contains(name) || error.message().contains("folder"), "{error}");
    error
}

#[tokio::test]
async fn sqlite_open_new_file_migrates_existing_stays() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("deep/down/verbatim.db");
    let store = SqliteStore::open(SqliteOptions::new(&file)).await.unwrap();
    store.get_or_create("cookies", vec![1]).await.unwrap();
    store.close().await;
    assert_eq!(versions(&file), every_version());
    let again = SqliteStore::open(SqliteOptions::new(&file)).await.unwrap();
    assert_eq!(again.get_or_create("cookies", vec![2]).await.unwrap(), [1]);
    again.close().await;
    assert_eq!(versions(&file), every_version());
    assert_eq!(again.get_or_create("cookies", vec![3]).await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(again.wallets(PageRequest::first()).await.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn sqlite_open_sets_page_size_by_file_kind() {
    let folder = tempfile::tempdir().unwrap();
    let (main, archive) = (folder.path().join("verbatim.db"), folder.path().join("archive.db"));
    SqliteStore::open(SqliteOptions::new(&main)).await.unwrap().close().await;
    SqliteArchive::open(SqliteOptions::new(&archive)).await.unwrap().close().await;
    for (file, size) in [(main, 4_096_i64), (archive, 16_384)] {
        let connection = foreign_connection(&file);
        assert_eq!(value::<i64>(&connection, "PRAGMA page_size"), size, "{}", file.display());
        assert_eq!(value::<String>(&connection, "PRAGMA journal_mode"), "wal", "{}", file.display());
    }
}

#[tokio::test]
async fn sqlite_open_empty_file_is_migrated() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("verbatim.db");
    fs::write(&file, b"").unwrap();
    let store = SqliteStore::open(SqliteOptions::new(&file)).await.unwrap();
    assert_eq!(store.get_or_create("cookies", vec![1]).await.unwrap(), [1]);
}

#[tokio::test]
async fn sqlite_open_newer_version_is_rejected_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("verbatim.db");
    SqliteStore::open(SqliteOptions::new(&file)).await.unwrap().close().await;
    run(&file, "INSERT INTO schema_version VALUES (99, '0099_later', 0); CREATE TABLE later (x)");
    let before = fs::read(&file).unwrap();
    let error = check_rejected(&file, ErrorKind::Unsupported, "newer version").await;
    assert_eq!(error.retry(), Retry::Never);
    assert!(error.message().contains("99"), "{error}");
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[tokio::test]
async fn sqlite_open_newer_version_in_log_is_rejected_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let (file, log) = (folder.path().join("verbatim.db"), folder.path().join("verbatim.db-wal"));
    SqliteStore::open(SqliteOptions::new(&file)).await.unwrap().close().await;
    let other = foreign_connection(&file);
    other.execute_batch("INSERT INTO schema_version VALUES (99, 'later', 0)").unwrap();
    // As after a kill: the newer version is only in the log.
    let copy = folder.path().join("killed.db");
    fs::copy(&file, &copy).unwrap();
    fs::copy(&log, folder.path().join("killed.db-wal")).unwrap();
    let before = (fs::read(&copy).unwrap(), fs::read(&log).unwrap());
    check_rejected(&copy, ErrorKind::Unsupported, "newer version").await;
    assert_eq!((fs::read(&copy).unwrap(), fs::read(folder.path().join("killed.db-wal")).unwrap()), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sqlite_concurrent_open_migrates_once() {
    for _ in 0..5 {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("verbatim.db");
        let open = || tokio::spawn(SqliteStore::open(SqliteOptions::new(&file)));
        let opening: Vec<_> = (0..8).map(|_| open()).collect();
        let mut stores = Vec::new();
        for store in opening {
            stores.push(store.await.unwrap().unwrap());
        }
        let first = stores[0].get_or_create("cookies", vec![0]).await.unwrap();
        for (store, number) in stores.iter().zip(0..) {
            assert_eq!(store.get_or_create("cookies", vec![number]).await.unwrap(), first);
        }
        assert_eq!(versions(&file), every_version());
    }
}

/// The file, set for the processes that [`sqlite_open_from_several_processes_migrates_once`] starts.
const OPEN: &str = "VERBATIM_TEST_OPEN";

#[tokio::test]
async fn sqlite_open_from_several_processes_migrates_once() {
    if let Some(file) = std::env::var_os(OPEN) {
        let store = SqliteStore::open(SqliteOptions::new(PathBuf::from(file))).await.unwrap();
        store.get_or_create("cookies", vec![1]).await.unwrap();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("verbatim.db");
    let open = || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "opening::sqlite_open_from_several_processes_migrates_once"])
            .env(OPEN, &file);
        command.stdout(std::process::Stdio::null()).spawn().unwrap()
    };
    let opening: Vec<_> = (0..4).map(|_| open()).collect();
    for mut process in opening {
        assert!(process.wait().unwrap().success());
    }
    assert_eq!(versions(&file), every_version());
}

#[tokio::test]
async fn sqlite_open_foreign_file_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let in_folder = |name: &str| folder.path().join(name);

    fs::create_dir(in_folder("folder.db")).unwrap();
    check_rejected(&in_folder("folder.db"), ErrorKind::Invalid, "is a folder").await;

    fs::write(in_folder("text.db"), "This is a letter. ".repeat(500)).unwrap();
    check_rejected(&in_folder("text.db"), ErrorKind::Corrupt, "no SQLite database").await;

    run(&in_folder("foreign.db"), "CREATE TABLE recipes (name TEXT)");
    let before = fs::read(in_folder("foreign.db")).unwrap();
    check_rejected(&in_folder("foreign.db"), ErrorKind::Invalid, "another program").await;
    assert_eq!(fs::read(in_folder("foreign.db")).unwrap(), before);

    SqliteArchive::open(SqliteOptions::new(in_folder("archive.db"))).await.unwrap().close().await;
    check_rejected(&in_folder("archive.db"), ErrorKind::Invalid, "transcripts").await;

    fs::write(in_folder("file"), "x").unwrap();
    check_rejected(&in_folder("file/verbatim.db"), ErrorKind::Unavailable, "folder").await;
}

#[tokio::test]
async fn sqlite_open_damaged_file_is_corrupt() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("verbatim.db");
    SqliteStore::open(SqliteOptions::new(&file)).await.unwrap().close().await;
    let whole = fs::read(&file).unwrap();

    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    check_rejected(&file, ErrorKind::Corrupt, "damaged").await;

    let mut noise = whole.clone();
    noise[4_096..].fill(0xA5);
    fs::write(&file, noise).unwrap();
    let failed = match SqliteStore::open(short_timeout(&file)).await {
        Ok(store) => store.get_or_create("cookies", vec![1]).await.unwrap_err(),
        Err(error) => error,
    };
    assert_eq!(failed.kind(), ErrorKind::Corrupt, "{failed}");
    assert!(failed.message().contains("verbatim.db"), "{failed}");
}

#[cfg(unix)]
#[tokio::test]
async fn sqlite_open_read_only_file_is_rejected() {
    use std::os::unix::fs::PermissionsExt;
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    let file = inner.join("verbatim.db");
    SqliteStore::open(SqliteOptions::new(&file)).await.unwrap().close().await;

    set(&file, 0o400);
    check_rejected(&file, ErrorKind::Unsupported, "read-only").await;
    set(&file, 0o600);
    set(&inner, 0o500);
    let error = SqliteStore::open(short_timeout(&file)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.message().contains("inner is read-only"), "{error}");
    let error = SqliteStore::open(short_timeout(inner.join("new.db"))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    set(&inner, 0o700);
    SqliteStore::open(SqliteOptions::new(&file)).await.unwrap().close().await;
}

#[cfg(unix)]
#[tokio::test]
async fn sqlite_open_creates_owner_only_files() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("outer/data");
    let store = SqliteStore::open(SqliteOptions::new(inner.join("verbatim.db"))).await.unwrap();
    store.get_or_create("cookies", vec![1]).await.unwrap();
    let archive = SqliteArchive::open(SqliteOptions::new(inner.join("archive.db"))).await.unwrap();
    let video = VideoId::new(Platform::YouTube, "dQw4w9WgXcQ").unwrap();
    archive.withdraw(&video, true, Timestamp::from_millis(1)).await.unwrap();
    assert_eq!((mode(folder.path().join("outer")), mode(inner.clone())), (0o700, 0o700));
    for name in ["verbatim.db", "archive.db"] {
        for beside in ["", "-wal", "-shm"] {
            assert_eq!(mode(inner.join(format!("{name}{beside}"))), 0o600, "{name}{beside}");
        }
    }
    // An existing empty file is treated as a new one.
    fs::write(inner.join("empty.db"), b"").unwrap();
    fs::set_permissions(inner.join("empty.db"), fs::Permissions::from_mode(0o644)).unwrap();
    SqliteStore::open(SqliteOptions::new(inner.join("empty.db"))).await.unwrap();
    assert_eq!(mode(inner.join("empty.db")), 0o600);
}

/// A command that root runs must not keep the files from the server.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_open_new_file_belongs_to_owner_of_folder() {
    use std::os::unix::fs::{MetadataExt, chown};
    const OWNER: u32 = 1_234;
    let folder = tempfile::tempdir().unwrap();
    // Only root may give files away.
    if chown(folder.path(), Some(OWNER), Some(OWNER)).is_err() {
        return;
    }
    let file = folder.path().join("outer/data/verbatim.db");
    let store = SqliteStore::open(SqliteOptions::new(&file)).await.unwrap();
    store.get_or_create("cookies", vec![1]).await.unwrap();
    for name in ["outer", "outer/data", "outer/data/verbatim.db", "outer/data/verbatim.db-wal"] {
        let found = fs::metadata(folder.path().join(name)).unwrap();
        assert_eq!((found.uid(), found.gid()), (OWNER, OWNER), "{name}");
    }
}

/// The data may be on another disk.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_open_link_to_missing_file_creates_file() {
    let folder = tempfile::tempdir().unwrap();
    let (link, file) = (folder.path().join("verbatim.db"), folder.path().join("linked.db"));
    std::os::unix::fs::symlink(&file, &link).unwrap();
    SqliteStore::open(SqliteOptions::new(&link)).await.unwrap().close().await;
    assert!(file.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_open_locked_file_times_out_with_file_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("verbatim.db");
    let store = SqliteStore::open(short_timeout(&file)).await.unwrap();
    store.get_or_create("cookies", vec![1]).await.unwrap();

    let other = foreign_connection(&file);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.get_or_create("salt", vec![2]).await.unwrap_err();
    assert_eq!((error.kind(), error.retry()), (ErrorKind::Unavailable, Retry::Backoff));
    assert!(error.message().contains("verbatim.db is locked by another process"), "{error}");
    // Reads and opens still work: neither needs the lock.
    store.wallets(PageRequest::first()).await.unwrap();
    SqliteStore::open(short_timeout(&file)).await.unwrap().close().await;
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(store.get_or_create("salt", vec![3]).await.unwrap(), [3]);
    store.close().await;

    other.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE").unwrap();
    check_rejected(&file, ErrorKind::Unavailable, "locked by another process").await;
    let fresh = folder.path().join("fresh.db");
    let holder = foreign_connection(&fresh);
    holder.execute_batch("CREATE TABLE x (y); DROP TABLE x; BEGIN EXCLUSIVE").unwrap();
    let error = check_rejected(&fresh, ErrorKind::Unavailable, "locked by another process").await;
    assert_eq!(error.retry(), Retry::Backoff);
}

#[tokio::test]
async fn sqlite_open_after_crash_checkpoints_log() {
    let (store, folder) = crate::store().await;
    store.get_or_create("cookies", vec![1]).await.unwrap();
    let (left, alone) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for name in ["verbatim.db", "verbatim.db-wal"] {
        fs::copy(folder.path().join(name), left.path().join(name)).unwrap();
    }
    store.close().await;
    let file = alone.path().join("verbatim.db");
    fs::copy(left.path().join("verbatim.db"), &file).unwrap();
    let secrets = "SELECT count(*) FROM sqlite_schema WHERE name = 'secrets'";
    let found: i64 = value(&foreign_connection(&file), secrets);
    assert_eq!(found, 0, "all tables are only in the log");

    let opened = crate::store_in(left.path()).await;
    fs::copy(left.path().join("verbatim.db"), &file).unwrap();
    let found: i64 = value(&foreign_connection(&file), "SELECT count(*) FROM secrets");
    assert_eq!(found, 1);
    opened.close().await;
}
