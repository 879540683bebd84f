//! `verbatim webhook verify`: verifies a stored webhook, for people who write a receiver.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, Subcommand};
use transcript_core::{
    Clock as _,
    accounts::webhooks::{SignatureError, verify_signature},
    headers::VERBATIM_SIGNATURE,
};
use verbatim::SystemClock;

use super::{CommandError, bounded_file, print};

/// Environment variable with the secret. It has not the prefix of the settings.
const SECRET_VARIABLE: &str = "WEBHOOK_SECRET";
/// The largest body and the largest file of secrets, in bytes.
const BODY_MAX: u64 = 16 << 20;
const SECRETS_MAX: u64 = 64 << 10;

#[derive(Debug, Subcommand)]
pub(super) enum WebhookCommand {
    /// Verify the signature of a stored webhook
    Verify(VerifyArgs),
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  WEBHOOK_SECRET=$(cat secret.txt) verbatim webhook verify \\
      --signature 't=1795338240,v1=5257a869…' body.json
  verbatim webhook verify --secret-file secret.txt --signature \"$header\" \\
      --tolerance 365d < body.json

The secret is in the variable WEBHOOK_SECRET or in a file, never an argument; several are separated by white \
space. The body must be exactly what was received.
Exit status 0: a secret signed the body; 1: none did, or the signature is too old; 2: an argument is wrong.")]
pub(super) struct VerifyArgs {
    /// File with the raw body [default: standard input]
    #[arg(value_name = "FILE")]
    body: Option<PathBuf>,
    /// Value of the header Verbatim-Signature
    #[arg(long, value_name = "HEADER")]
    signature: String,
    /// File with the secret.
    #[arg(long, value_name = "FILE", help = "File with the secret, in place of the variable WEBHOOK_SECRET")]
    secret_file: Option<PathBuf>,
    /// Largest accepted difference between the time of the signature and now
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = humantime::parse_duration)]
    tolerance: Duration,
}

/// Runs a subcommand of `webhook`.
pub(super) fn run(command: &WebhookCommand) -> Result<(), CommandError> {
    let WebhookCommand::Verify(args) = command;
    let secrets = secrets(args.secret_file.as_deref())?;
    let body = read(args.body.as_deref().unwrap_or(Path::new("-")), BODY_MAX)?;
    let now = SystemClock::default().now();
    match verify_signature(Some(&args.signature), &body, &secrets, now, args.tolerance) {
        Ok(()) => print("valid\n"),
        Err(error @ (SignatureError::Stale(_) | SignatureError::Early(_))) => {
            let advice = "--tolerance accepts a greater difference";
            Err(CommandError::Fault(format!("not valid: {}; {advice}", error.message(VERBATIM_SIGNATURE))))
        }
        Err(error) => Err(CommandError::Fault(format!("not valid: {}", error.message(VERBATIM_SIGNATURE)))),
    }
}

fn secrets(file: Option<&Path>) -> Result<Vec<String>, CommandError> {
    let text = match file {
        Some(path) => String::from_utf8_lossy(&read(path, SECRETS_MAX)?).into_owned(),
        None => std::env::var(SECRET_VARIABLE).unwrap_or_default(),
    };
    let secrets: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    if secrets.is_empty() {
        let message = format!("there is no secret: set {SECRET_VARIABLE}, or name a file with --secret-file");
        return Err(CommandError::Wrong(message));
    }
    Ok(secrets)
}

fn read(path: &Path, max: u64) -> Result<Vec<u8>, CommandError> {
    bounded_file::read(path, max)
        .map_err(|error| CommandError::Wrong(format!("cannot read {}: {error}", bounded_file::name(path))))
}
