//! Whom we trust: the system's root certificates and those of the operator's file.

use std::{path::Path, sync::Arc};

use rustls::{
    ClientConfig,
    client::danger::ServerCertVerifier,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, pem::PemObject},
};
use transcript_core::{Error, ErrorKind, Result, Retry};

/// Makes TLS configurations: one for each proxy, so that no session resumed through one was begun
/// through another. The host program's process-wide provider of cryptography is left as it is.
pub(crate) struct Trust {
    provider: Arc<CryptoProvider>,
    verifier: Arc<dyn ServerCertVerifier>,
}

impl Trust {
    /// Trust in the system's certificates and those of a PEM file.
    pub(crate) fn new(ca_file: Option<&Path>) -> Result<Self> {
        let extra = ca_file.map(read_certificates).transpose()?.unwrap_or_default();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = verifier(extra, Arc::clone(&provider))?;
        Ok(Self { provider, verifier })
    }

    /// A new configuration, with a session cache of its own.
    pub(crate) fn config(&self) -> Result<ClientConfig> {
        let mut config = ClientConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::unexpected(format!("TLS cannot be set up: {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&self.verifier))
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let wrong = |what: &str| Error::invalid(format!("upstream.ca_file {}: {what}", path.display()));
    let read = || CertificateDer::pem_file_iter(path)?.collect::<std::result::Result<Vec<_>, _>>();
    match read() {
        Ok(found) if found.is_empty() => Err(wrong("it holds no certificate in PEM form")),
        Ok(found) => Ok(found),
        Err(error) => Err(wrong(&format!("it cannot be read: {error}"))),
    }
}

#[cfg(not(target_os = "android"))]
fn verifier(
    extra: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>> {
    match rustls_platform_verifier::Verifier::new_with_extra_roots(extra, provider) {
        Ok(verifier) => Ok(Arc::new(verifier)),
        Err(error) => Err(no_roots(&error)),
    }
}

/// The system's folder of roots is read like on other Unixes: the platform's own verifier would have to
/// be given the app's Java context first, and fails hard without it.
#[cfg(target_os = "android")]
fn verifier(
    extra: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>> {
    let folders = ["/apex/com.android.conscrypt/cacerts", "/system/etc/security/cacerts"];
    let folder = folders.map(Path::new).into_iter().find(|folder| folder.is_dir());
    let system = rustls_native_certs::load_certs_from_paths(None, folder);
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(system.certs.into_iter().chain(extra));
    match rustls::client::WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build() {
        Ok(verifier) => Ok(verifier),
        Err(error) => Err(no_roots(&error)),
    }
}

#[cold]
fn no_roots(error: &dyn std::error::Error) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        Retry::Never,
        format!(
            "there are no usable root certificates ({error}): install the system's, or name a PEM file in \
             upstream.ca_file"
        ),
    )
}
