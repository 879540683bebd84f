//! A real mail server for tests: runs `smtpd.py` as a child process.

use std::{
    io::{BufRead, BufReader, Lines, Write},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::OnceLock,
};

use anyhow::{Context as _, Result, ensure};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::Value;
use tempfile::TempDir;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/smtp");

/// Path of the Python interpreter with the mail server; the first call installs it.
fn python() -> Result<&'static PathBuf> {
    static PYTHON: OnceLock<Option<PathBuf>> = OnceLock::new();
    let installed = PYTHON.get_or_init(|| {
        let output = Command::new(format!("{FOLDER}/install.sh")).stderr(Stdio::inherit()).output().ok()?;
        let path = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| PathBuf::from(path.trim()))
    });
    installed
        .as_ref()
        .context("cannot install the mail server of the tests: see the output of tests/smtp/install.sh")
}

/// A running mail server; drop stops it.
pub(crate) struct Smtpd {
    child: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    pub(crate) port: u16,
    /// Certificate of the authority that signed the server's certificate, in PEM.
    pub(crate) authority: String,
    _files: TempDir,
}

impl Smtpd {
    /// Starts a server with these arguments; with `--tls` it presents a certificate for `localhost`.
    pub(crate) fn start(arguments: &[&str]) -> Result<Self> {
        let files = TempDir::new()?;
        let (authority, certificate, key) = certificates()?;
        let (cert_file, key_file) = (files.path().join("cert.pem"), files.path().join("key.pem"));
        std::fs::write(&cert_file, certificate)?;
        std::fs::write(&key_file, key)?;
        let mut child = Command::new(python()?)
            .arg(format!("{FOLDER}/smtpd.py"))
            .args(arguments)
            .arg("--cert")
            .arg(cert_file)
            .arg("--key")
            .arg(key_file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Tests drop connections on purpose, and the server logs each.
            .stderr(Stdio::null())
            .spawn()?;
        let (input, output) = child.stdin.take().zip(child.stdout.take()).context("no pipes")?;
        let lines = BufReader::new(output).lines();
        let mut server = Self { child, input, lines, port: 0, authority, _files: files };
        server.port = server.line()?["port"].as_u64().context("no port")?.try_into()?;
        Ok(server)
    }

    /// Waits for the server's next line and parses it.
    pub(crate) fn line(&mut self) -> Result<Value> {
        let line = self.lines.next().context("the mail server has exited")??;
        Ok(serde_json::from_str(&line)?)
    }

    /// Sets the server's mode; the server has reported every earlier mail when this returns.
    pub(crate) fn mode(&mut self, mode: &str) -> Result<()> {
        writeln!(self.input, "{mode}")?;
        self.input.flush()?;
        let reply = self.line()?;
        ensure!(reply["mode"] == mode, "{reply}");
        Ok(())
    }
}

impl Drop for Smtpd {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Creates an authority, and a certificate and key for `localhost`, in PEM.
fn certificates() -> Result<(String, String, String)> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate()?;
    let authority = params.self_signed(&authority_key)?.pem();
    let issuer = Issuer::new(params, authority_key);
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(vec!["localhost".to_owned()])?.signed_by(&key, &issuer)?;
    Ok((authority, certificate.pem(), key.serialize_pem()))
}
