//! Encrypted connections to a server with a certificate of a test authority.

use std::io::Write as _;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use sqlx::{ConnectOptions, Row, postgres::PgConnectOptions};
use storage_sqlx::PostgresStore;
use tempfile::NamedTempFile;
use transcript_core::{ErrorKind, directory::SecretStore};
use verbatim_tests_postgres::{Cluster, Durability};

/// A certificate authority, and the file with its certificate.
struct TestAuthority {
    issuer: Issuer<'static, KeyPair>,
    file: NamedTempFile,
}

impl TestAuthority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(certificate.pem().as_bytes()).unwrap();
        Self { issuer: Issuer::new(params, key), file }
    }

    /// Starts a server for `localhost` that accepts only encrypted connections.
    fn server(&self) -> Cluster {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let cluster = Cluster::start(Durability::None).unwrap();
        cluster.write_file("server.crt", &certificate.pem()).unwrap();
        cluster.write_file("server.key", &key.serialize_pem()).unwrap();
        cluster
            .write_file("pg_hba.conf", "local all all trust\nhostssl all all 127.0.0.1/32 trust\n")
            .unwrap();
        cluster.add_setting("ssl = on").unwrap();
        cluster.stop().unwrap();
        cluster.restart().unwrap();
        cluster
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_verify_full_checks_authority_and_name() {
    let (ours, theirs) = (TestAuthority::new(), TestAuthority::new());
    let cluster = ours.server();
    let database = cluster.database().unwrap();
    let name = database.url.rsplit('/').next().unwrap();
    let url = |host: &str, mode: &str, authority: &TestAuthority| {
        let (port, root) = (cluster.port(), authority.file.path().display());
        format!("postgres://verbatim@{host}:{port}/{name}?sslmode={mode}&sslrootcert={root}")
    };
    let good = url("localhost", "verify-full", &ours);
    let store = PostgresStore::open(crate::options_at(&good)).await.unwrap();
    assert_eq!(store.get_or_create("a", vec![1]).await.unwrap(), [1]);
    let mut connection = good.parse::<PgConnectOptions>().unwrap().connect().await.unwrap();
    let encrypted = "SELECT count(*), bool_and(ssl) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid)
        WHERE a.application_name LIKE 'verbatim %'";
    let row = sqlx::query(encrypted).fetch_one(&mut connection).await.unwrap();
    assert!(row.get::<i64, _>(0) > 0 && row.get::<bool, _>(1), "all connections are encrypted");

    let open = |url: String| async move { PostgresStore::open(crate::options_at(&url)).await };
    // With `verify-ca` the name in the certificate is not checked.
    assert!(open(url("127.0.0.1", "verify-ca", &ours)).await.is_ok());
    for (url, expected) in [
        (url("127.0.0.1", "verify-full", &ours), "no encrypted connection"),
        (url("localhost", "verify-full", &theirs), "no encrypted connection"),
        (url("localhost", "verify-ca", &theirs), "no encrypted connection"),
        (url("localhost", "disable", &ours), "rejects this user"),
    ] {
        let error = open(url.clone()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{url}: {error}");
        assert!(error.message().contains(expected), "{url}: {error}");
    }
    store.close().await;
}
