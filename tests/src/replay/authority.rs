//! The certificate authority that the proxy's clients trust.

use std::{collections::HashMap, fmt, io::Write as _, path::Path, sync::Arc};

use anyhow::{Context as _, Result};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
};
use tempfile::NamedTempFile;

use super::request_log::RequestLogState;

/// Maximum of cached TLS configurations, one per host; a test has a handful.
const HOSTS_MAX: usize = 256;

/// A certificate authority in memory that signs a certificate for any host.
pub struct TestAuthority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    file: NamedTempFile,
    hosts: RequestLogState<HashMap<(String, bool), Arc<ServerConfig>>>,
}

impl TestAuthority {
    /// Creates an authority and writes its certificate to a temporary file.
    ///
    /// # Errors
    /// The certificate cannot be created or written.
    pub fn new() -> Result<Self> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, "Verbatim replay proxy (tests only)");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        let mut file = tempfile::Builder::new().prefix("replay-ca-").suffix(".pem").tempfile()?;
        file.write_all(certificate.pem().as_bytes()).context("the authority's certificate")?;
        file.flush()?;
        Ok(Self {
            issuer: Issuer::new(params, key),
            certificate: certificate.der().clone(),
            file,
            hosts: RequestLogState::default(),
        })
    }

    /// The file with the authority's certificate in PEM. It is deleted with the authority.
    pub fn ca_file(&self) -> &Path {
        self.file.path()
    }

    /// The TLS configuration of a server for `host`, with a certificate for that name.
    pub(super) fn server_config(&self, host: &str, http1_only: bool) -> Result<Arc<ServerConfig>> {
        let name = (host.to_owned(), http1_only);
        if let Some(known) = self.hosts.lock().get(&name) {
            return Ok(Arc::clone(known));
        }
        let key = KeyPair::generate()?;
        let certificate =
            CertificateParams::new(vec![host.to_owned()])?.signed_by(&key, &self.issuer)?.der().clone();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate, self.certificate.clone()],
                PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der())),
            )?;
        if !http1_only {
            config.alpn_protocols.push(b"h2".to_vec());
        }
        config.alpn_protocols.push(b"http/1.1".to_vec());
        let config = Arc::new(config);
        let mut hosts = self.hosts.lock();
        if hosts.len() < HOSTS_MAX {
            hosts.insert(name, Arc::clone(&config));
        }
        Ok(config)
    }
}

impl fmt::Debug for TestAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestAuthority").field("file", &self.file.path()).finish_non_exhaustive()
    }
}
