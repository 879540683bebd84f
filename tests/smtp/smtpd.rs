//! A real mail server in a process of its own: `smtpd.py`, for whoever sends mail in a test.

use std::{
    io::{BufRead, BufReader, Lines, Write},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::OnceLock,
};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::Value;
use tempfile::TempDir;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/smtp");

/// The Python that has the server. The first caller has it installed.
fn python() -> &'static PathBuf {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let output = Command::new(format!("{FOLDER}/install.sh")).stderr(Stdio::inherit()).output().unwrap();
        assert!(output.status.success(), "the mail server of the tests cannot be installed");
        PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
    })
}

/// A running mail server. Dropping it ends it.
pub(crate) struct Smtpd {
    child: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    pub(crate) port: u16,
    /// The certificate of whoever vouches for the server, in PEM.
    pub(crate) authority: String,
    _files: TempDir,
}

impl Smtpd {
    /// A server with these arguments; with `--tls`, its certificate is that of `localhost`.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let files = tempfile::tempdir().unwrap();
        let (authority, certificate, key) = certificates();
        let (cert_file, key_file) = (files.path().join("cert.pem"), files.path().join("key.pem"));
        std::fs::write(&cert_file, certificate).unwrap();
        std::fs::write(&key_file, key).unwrap();
        let mut child = Command::new(python())
            .arg(format!("{FOLDER}/smtpd.py"))
            .args(arguments)
            .arg("--cert")
            .arg(cert_file)
            .arg("--key")
            .arg(key_file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // It complains about connections that were dropped, which is what they were dropped for.
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let lines = BufReader::new(output).lines();
        let mut server = Self { child, input, lines, port: 0, authority, _files: files };
        server.port = server.line()["port"].as_u64().unwrap().try_into().unwrap();
        server
    }

    /// What it says next: it waits for that.
    pub(crate) fn line(&mut self) -> Value {
        let line = self.lines.next().expect("the mail server has ended").unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// From now on it does this; what it has taken before was told before.
    pub(crate) fn mode(&mut self, mode: &str) {
        writeln!(self.input, "{mode}").unwrap();
        self.input.flush().unwrap();
        assert_eq!(self.line()["mode"], mode);
    }
}

impl Drop for Smtpd {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An authority, and the certificate and key of `localhost`, in PEM.
fn certificates() -> (String, String, String) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&authority_key).unwrap().pem();
    let issuer = Issuer::new(params, authority_key);
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    (authority, certificate.pem(), key.serialize_pem())
}
