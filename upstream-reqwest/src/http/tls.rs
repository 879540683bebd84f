//! Whom we trust: the system's root certificates and those of the operator's file.
//!
//! On many systems the roots are some hundred files, and to read them takes longer than all else that is done
//! before a server can answer. So they are read on a thread of their own, and the first connection that
//! begins earlier waits for them.

use std::{
    path::Path,
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
};

use rustls::{
    ClientConfig, DigitallySignedStruct, Error as TlsError, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::CryptoProvider,
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};
use transcript_core::{Error, ErrorKind, Result, Retry};

/// The roots that are in use. Every client of a process that trusts the same ones shares them: they are read once.
static SHARED: Mutex<Vec<Weak<Roots>>> = Mutex::new(Vec::new());

/// Makes TLS configurations: one for each proxy, so that no session resumed through one was begun
/// through another. The host program's process-wide provider of cryptography is left as it is.
pub(crate) struct Trust {
    roots: Arc<Roots>,
}

impl Trust {
    /// Trust in the system's certificates and those of a PEM file.
    ///
    /// # Errors
    /// The file cannot be used. What is wrong with the system's certificates is said by
    /// [`Trust::wait`], in the log, and by every connection.
    pub(crate) fn new(ca_file: Option<&Path>) -> Result<Self> {
        let extra = ca_file.map(read_certificates).transpose()?.unwrap_or_default();
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.retain(|roots| roots.strong_count() > 0);
        if let Some(roots) = shared.iter().filter_map(Weak::upgrade).find(|roots| roots.extra == extra) {
            return Ok(Self { roots });
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let roots = Arc::new(Roots { extra, provider, verifier: OnceLock::new() });
        shared.push(Arc::downgrade(&roots));
        drop(shared);
        let reading = Arc::clone(&roots);
        let read = move || {
            if let Err(error) = reading.verifier() {
                tracing::error!(%error, "no platform can be asked for anything");
            }
        };
        // Without a thread they are read by the first connection.
        std::thread::Builder::new().name("roots".to_owned()).spawn(read).ok();
        Ok(Self { roots })
    }

    /// Waits until the system's certificates are read.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] when there are none, and none were given.
    pub(super) fn wait(&self) -> Result<()> {
        self.roots.verifier().map(drop)
    }

    /// A new configuration, with a session cache of its own.
    pub(crate) fn config(&self) -> Result<ClientConfig> {
        let mut config = ClientConfig::builder_with_provider(Arc::clone(&self.roots.provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::unexpected(format!("TLS cannot be set up: {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&self.roots) as _)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// The system's verifier, from the moment at which it is there.
#[derive(Debug)]
struct Roots {
    extra: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
    verifier: OnceLock<Result<Arc<dyn ServerCertVerifier>>>,
}

impl Roots {
    fn verifier(&self) -> Result<&dyn ServerCertVerifier> {
        let read = || verifier(self.extra.clone(), Arc::clone(&self.provider));
        self.verifier.get_or_init(read).as_deref().map_err(Clone::clone)
    }

    fn for_handshake(&self) -> std::result::Result<&dyn ServerCertVerifier, TlsError> {
        self.verifier().map_err(|error| TlsError::General(error.message().to_owned()))
    }
}

impl ServerCertVerifier for Roots {
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
        // What the verifiers of all systems say; this is asked before any of them need be there.
        self.provider.signature_verification_algorithms.supported_schemes()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_roots_are_there_for_whoever_waits() {
        let trust = Trust::new(None).unwrap();
        trust.wait().unwrap();
        let (config, verifier) = (trust.config().unwrap(), trust.roots.verifier().unwrap());
        assert_eq!(trust.roots.supported_verify_schemes(), verifier.supported_verify_schemes());
        assert_eq!(config.alpn_protocols, [&b"h2"[..], b"http/1.1"]);
    }

    #[test]
    fn who_trusts_the_same_reads_it_once() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("ca.pem");
        let made = rcgen::generate_simple_self_signed(vec!["example.org".to_owned()]).unwrap();
        std::fs::write(&file, made.cert.pem()).unwrap();
        let (first, second) = (Trust::new(Some(&file)).unwrap(), Trust::new(Some(&file)).unwrap());
        assert!(Arc::ptr_eq(&first.roots, &second.roots));
        let system = Trust::new(None).unwrap();
        assert!(!Arc::ptr_eq(&first.roots, &system.roots));
        // What the file holds counts, not its name.
        let other = rcgen::generate_simple_self_signed(vec!["example.org".to_owned()]).unwrap();
        std::fs::write(&file, other.cert.pem()).unwrap();
        assert!(!Arc::ptr_eq(&first.roots, &Trust::new(Some(&file)).unwrap().roots));
    }

    #[test]
    fn roots_that_are_not_there_are_told_to_every_connection() {
        let none = no_roots(&std::io::Error::other("no files"));
        let roots = Roots {
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
