//! TLS trust: the system's root certificates and those of the operator's file.
//!
//! On many systems the roots are several hundred files, and reading them takes longer than the rest of the server
//! start. A server therefore reads them on a separate thread, and a connection that starts earlier waits. Otherwise
//! the first connection reads them.

use std::{
    ffi::OsStr,
    path::Path,
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
};

use rustls::{
    ClientConfig, DigitallySignedStruct, Error as TlsError, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::CryptoProvider,
    pki_types::{
        CertificateDer, ServerName, UnixTime,
        pem::{self, PemObject},
    },
};
use transcript_core::{Error, Result};

/// Root certificates in use.
///
/// Clients of the process with the same roots share them, so they are read once.
static SHARED: Mutex<Vec<Weak<RootSource>>> = Mutex::new(Vec::new());

/// Creates TLS configurations: one per proxy, so that a session is never resumed through another proxy.
///
/// The process-wide cryptography provider of the host program is not changed.
pub(crate) struct TlsConfigFactory {
    roots: Arc<RootSource>,
}

impl TlsConfigFactory {
    /// Trusts the system's certificates and those of a PEM file, or of a folder with the names of `openssl rehash`.
    ///
    /// # Errors
    /// The file or the folder cannot be read. Errors of the system's certificates are returned by
    /// [`TlsConfigFactory::load`] and by every connection.
    pub(crate) fn new(ca_file: Option<&Path>) -> Result<Self> {
        let extra = ca_file.map(read_certificates).transpose()?.unwrap_or_default();
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.retain(|roots| roots.strong_count() > 0);
        if let Some(roots) = shared.iter().filter_map(Weak::upgrade).find(|roots| roots.extra == extra) {
            return Ok(Self { roots });
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let roots = Arc::new(RootSource { extra, provider, verifier: OnceLock::new() });
        shared.push(Arc::downgrade(&roots));
        Ok(Self { roots })
    }

    /// Starts a thread that loads the system's certificates, unless they are loaded, and logs errors.
    pub(super) fn preload(&self) {
        if self.roots.verifier.get().is_some() {
            return;
        }
        let roots = Arc::clone(&self.roots);
        let read = move || {
            if let Err(error) = roots.verifier() {
                tracing::error!(%error, "loading the root certificates failed");
            }
        };
        // If the thread cannot start, the first connection reads them.
        std::thread::Builder::new().name("roots".to_owned()).spawn(read).ok();
    }

    /// Loads the system's certificates, or waits until another thread has.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] when the system has none and the file names none.
    pub(super) fn load(&self) -> Result<()> {
        self.roots.verifier().map(drop)
    }

    /// A new configuration with its own session cache.
    pub(crate) fn config(&self) -> Result<ClientConfig> {
        let mut config = ClientConfig::builder_with_provider(Arc::clone(&self.roots.provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::unexpected(format!("TLS cannot be configured: {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&self.roots) as _)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// The certificate verifier, available once the roots are loaded.
#[derive(Debug)]
struct RootSource {
    extra: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
    verifier: OnceLock<Result<Arc<dyn ServerCertVerifier>>>,
}

impl RootSource {
    fn verifier(&self) -> Result<&dyn ServerCertVerifier> {
        let read = || verifier(self.extra.clone(), Arc::clone(&self.provider));
        self.verifier.get_or_init(read).as_deref().map_err(Clone::clone)
    }

    fn for_handshake(&self) -> std::result::Result<&dyn ServerCertVerifier, TlsError> {
        self.verifier().map_err(|error| TlsError::General(error.message().to_owned()))
    }
}

impl ServerCertVerifier for RootSource {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, TlsError> {
        let verifier = self.for_handshake()?;
        verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, TlsError> {
        self.for_handshake()?.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, TlsError> {
        self.for_handshake()?.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        // The schemes that the verifiers of all systems report; rustls needs them before the roots are loaded.
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let wrong = |what: &str| Error::invalid(format!("upstream.ca_file {}: {what}", path.display()));
    let is_folder = path.is_dir();
    let read = if is_folder { read_folder } else { read_file };
    match read(path) {
        Ok(found) if found.is_empty() && is_folder => {
            Err(wrong("it holds no certificate with a name of openssl rehash"))
        }
        Ok(found) if found.is_empty() => Err(wrong("it holds no certificate in PEM form")),
        Ok(found) => Ok(found),
        Err(error) => Err(wrong(&format!("it cannot be read: {error}"))),
    }
}

fn read_file(path: &Path) -> std::result::Result<Vec<CertificateDer<'static>>, pem::Error> {
    CertificateDer::pem_file_iter(path)?.collect()
}

/// Reads the files that OpenSSL reads in a folder. As there, unusable ones are skipped.
fn read_folder(folder: &Path) -> std::result::Result<Vec<CertificateDer<'static>>, pem::Error> {
    let entries = std::fs::read_dir(folder).map_err(pem::Error::Io)?.filter_map(std::result::Result::ok);
    let mut files: Vec<_> =
        entries.filter(|entry| is_hashed(&entry.file_name())).map(|entry| entry.path()).collect();
    files.sort();
    let found = files.iter().filter_map(|file| read_file(file).ok()).flatten();
    Ok(found.filter(|root| RootCertStore::empty().add(root.clone()).is_ok()).collect())
}

/// Whether a name has the form of `openssl rehash`: the hash of the subject and a number, such as `5d3033c5.0`.
fn is_hashed(name: &OsStr) -> bool {
    let parts = name.to_str().and_then(|name| name.split_once('.'));
    parts.is_some_and(|(hash, number)| {
        hash.len() == 8 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) && number.parse::<u32>().is_ok()
    })
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

/// Reads the system's folder of roots, as on other Unixes.
///
/// The platform's own verifier needs the app's Java context and fails hard without it.
#[cfg(target_os = "android")]
fn verifier(
    extra: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>> {
    let folders = ["/apex/com.android.conscrypt/cacerts", "/system/etc/security/cacerts"];
    let folder = folders.map(Path::new).into_iter().find(|folder| folder.is_dir());
    let system = rustls_native_certs::load_certs_from_paths(None, folder);
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(system.certs.into_iter().chain(extra));
    match rustls::client::WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build() {
        Ok(verifier) => Ok(verifier),
        Err(error) => Err(no_roots(&error)),
    }
}

#[cold]
fn no_roots(error: &dyn std::error::Error) -> Error {
    Error::unsupported(format!(
        "no usable root certificates ({error}): install the system's, or set a PEM file in \
             upstream.ca_file"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_after_load_are_available() {
        let trust = TlsConfigFactory::new(None).unwrap();
        trust.load().unwrap();
        let (config, verifier) = (trust.config().unwrap(), trust.roots.verifier().unwrap());
        assert_eq!(trust.roots.supported_verify_schemes(), verifier.supported_verify_schemes());
        assert_eq!(config.alpn_protocols, [&b"h2"[..], b"http/1.1"]);
    }

    #[test]
    fn roots_same_content_are_shared() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("ca.pem");
        let made = rcgen::generate_simple_self_signed(vec!["example.org".to_owned()]).unwrap();
        std::fs::write(&file, made.cert.pem()).unwrap();
        let (first, second) =
            (TlsConfigFactory::new(Some(&file)).unwrap(), TlsConfigFactory::new(Some(&file)).unwrap());
        assert!(Arc::ptr_eq(&first.roots, &second.roots));
        let system = TlsConfigFactory::new(None).unwrap();
        assert!(!Arc::ptr_eq(&first.roots, &system.roots));
        // In a folder, only names of `openssl rehash` are read.
        assert!(TlsConfigFactory::new(Some(folder.path())).is_err());
        std::fs::copy(&file, folder.path().join("0f3a9c5d.0")).unwrap();
        std::fs::write(folder.path().join("0f3a9c5d.1"), "unusable").unwrap();
        assert!(Arc::ptr_eq(&first.roots, &TlsConfigFactory::new(Some(folder.path())).unwrap().roots));
        // The content of the file is compared, not its name.
        let other = rcgen::generate_simple_self_signed(vec!["example.org".to_owned()]).unwrap();
        std::fs::write(&file, other.cert.pem()).unwrap();
        assert!(!Arc::ptr_eq(&first.roots, &TlsConfigFactory::new(Some(&file)).unwrap().roots));
    }

    #[test]
    fn roots_missing_fail_every_connection() {
        let none = no_roots(&std::io::Error::other("no files"));
        let roots = RootSource {
            extra: Vec::new(),
            provider: Arc::new(rustls::crypto::ring::default_provider()),
            verifier: OnceLock::from(Err(none)),
        };
        let name = ServerName::try_from("example.org").unwrap();
        let now = UnixTime::since_unix_epoch(std::time::Duration::ZERO);
        let cert = CertificateDer::from(vec![0]);
        let error = roots.verify_server_cert(&cert, &[], &name, &[], now).unwrap_err();
        assert!(error.to_string().contains("no usable root certificates (no files)"), "{error}");
    }
}
