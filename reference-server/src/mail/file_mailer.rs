//! The outbox folder: for tests, and for operators that deliver mail by other means.

use std::{
    fs::{self, File, Permissions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    time::SystemTime,
};

use async_trait::async_trait;
use lettre::message::Mailbox;
use transcript_core::{
    Error, Result,
    accounts::mail::{MailMessage, Mailer},
};

use super::message::{Transport, message, name};

/// Maximum size of a mail's headers, in bytes.
const HEAD_MAX: u64 = 64 * 1024;

/// Writes each mail to a file that only its owner can read. Nothing is delivered.
#[derive(Debug)]
pub(crate) struct FileMailer {
    folder: PathBuf,
    from: Mailbox,
}

impl FileMailer {
    /// Creates a mailer for this folder, which is created with the first mail.
    pub(crate) fn new(folder: PathBuf, from: Mailbox) -> Self {
        Self { folder, from }
    }
}

#[async_trait]
impl Mailer for FileMailer {
    async fn send(&self, mail: MailMessage) -> Result<()> {
        let bytes = message(&mail, &self.from, Transport::File)?.formatted();
        // Names sort by time, also those of one millisecond.
        let time = humantime::format_rfc3339_nanos(SystemTime::now()).to_string();
        let file = format!("{}-{}.eml", time.replace([':', '-'], ""), &name(&mail)[..8]);
        let folder = self.folder.clone();
        let written = tokio::task::spawn_blocking(move || write(&folder, &file, &bytes)).await;
        match written {
            Ok(Ok(path)) => {
                tracing::info!("mail written to {}: no mail server is set", path.display());
                Ok(())
            }
            Ok(Err(error)) => {
                let folder = self.folder.display();
                Err(Error::unavailable(format!("cannot write the mail to {folder}: {error}")))
            }
            Err(_) => Err(Error::unavailable("the mail was not written: the program is stopping")),
        }
    }
}

/// Writes a file atomically and synchronizes it to disk.
fn write(folder: &Path, file: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    restrict_to_owner(folder)?;
    // Temporary files have the mode 0600.
    let mut part = tempfile::Builder::new().prefix(".").suffix(".part").tempfile_in(folder)?;
    part.write_all(bytes)?;
    part.as_file().sync_all()?;
    let path = folder.join(file);
    part.persist(&path).map_err(|error| error.error)?;
    File::open(folder)?.sync_all()?;
    Ok(path)
}

/// Deletes the mails to an address from the outbox folder and returns their number.
///
/// Incomplete files are deleted too.
///
/// # Errors
/// The first file that cannot be read or deleted, after all others are done.
pub(crate) fn delete_mails(folder: &Path, address: &str) -> io::Result<usize> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let (mut count, mut first_error) = (0, None);
    for entry in entries {
        let path = entry?.path();
        let is_mail = path.extension().is_some_and(|end| end == "eml" || end == "part");
        if !is_mail {
            continue;
        }
        let deleted = is_to(&path, address)
            .and_then(|is_to| if is_to { fs::remove_file(&path).map(|()| 1) } else { Ok(0) });
        match deleted {
            Ok(deleted) => count += deleted,
            // Another process deleted it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let named = io::Error::new(error.kind(), format!("{}: {error}", path.display()));
                first_error.get_or_insert(named);
            }
        }
    }
    if count > 0 {
        File::open(folder)?.sync_all()?;
    }
    first_error.map_or(Ok(count), Err)
}

/// Whether the headers of a mail name this recipient.
fn is_to(path: &Path, address: &str) -> io::Result<bool> {
    let mut head = Vec::new();
    File::open(path)?.take(HEAD_MAX).read_to_end(&mut head)?;
    let head = String::from_utf8_lossy(&head);
    let head = head.split_once("\r\n\r\n").map_or(head.as_ref(), |(head, _)| head);
    // A folded header continues in the next line after white space.
    let unfolded = head.replace("\r\n ", " ");
    Ok(unfolded.lines().any(|line| {
        let to = line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("to"));
        to.is_some_and(|(_, to)| to.trim().eq_ignore_ascii_case(address))
    }))
}

#[cfg(unix)]
fn restrict_to_owner(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder, Permissions::from_mode(0o700))
}

#[cfg(not(unix))]
fn restrict_to_owner(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use transcript_core::Retry;

    use super::*;

    fn mail(to: &str) -> MailMessage {
        let text = |text: &str| text.to_owned();
        MailMessage { to: text(to), subject: text("S"), text: text("T\n"), html: text("<p>T</p>\n") }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn outbox_files_are_owner_readable() {
        use std::os::unix::fs::PermissionsExt;
        let data = tempfile::tempdir().unwrap();
        let folder = data.path().join("a/outbox");
        let mailer = FileMailer::new(folder.clone(), "a@b.example".parse().unwrap());
        mailer.send(mail("ann@example.org")).await.unwrap();
        mailer.send(mail("ben@example.org")).await.unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700);
        let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        assert_eq!(files.len(), 2, "{files:?}");
        for (file, to) in files.iter().zip(["ann", "ben"]) {
            assert_eq!((mode(file), file.extension().unwrap().to_str()), (0o600, Some("eml")));
            let text = fs::read_to_string(file).unwrap();
            assert!(text.contains(&format!("\r\nTo: {to}@example.org\r\n")), "{text}");
        }
    }

    #[tokio::test]
    async fn outbox_delete_removes_mails_of_address() {
        let data = tempfile::tempdir().unwrap();
        let folder = data.path().join("outbox");
        assert_eq!(delete_mails(&folder, "ann@example.org").unwrap(), 0, "the folder does not exist yet");
        let mailer = FileMailer::new(folder.clone(), "ann@b.example".parse().unwrap());
        let long = format!("{}@{}.example", "n".repeat(64), vec!["d".repeat(60); 3].join("."));
        let addresses = ["ann@example.org", "joann@example.org", "ann@example.org", &long, "ben@example.org"];
        for to in addresses {
            mailer.send(MailMessage { text: "To: ben@example.org\n".to_owned(), ..mail(to) }).await.unwrap();
        }
        fs::write(folder.join("note.txt"), "To: ann@example.org\r\n\r\n").unwrap();
        fs::write(folder.join(".x.part"), "From: a@b.example\r\nTo: ann@example.org\r\nSub").unwrap();
        let left = || fs::read_dir(&folder).unwrap().count();
        for (address, count, after) in
            [("ann@example.org", 3, 4), (&long, 1, 3), ("other@example.org", 0, 3), ("ben@example.org", 1, 2)]
        {
            assert_eq!((delete_mails(&folder, address).unwrap(), left()), (count, after), "{address}");
        }
    }

    #[tokio::test]
    async fn outbox_unwritable_folder_is_retryable() {
        let data = tempfile::tempdir().unwrap();
        let folder = data.path().join("outbox");
        fs::write(&folder, "a file").unwrap();
        let mailer = FileMailer::new(folder.clone(), "a@b.example".parse().unwrap());
        let refused = mailer.send(mail("ann@example.org")).await.unwrap_err();
        assert_eq!(refused.retry(), Retry::Backoff);
        assert!(refused.to_string().contains(&folder.display().to_string()), "{refused}");
        assert_eq!(mailer.send(mail("no-address")).await.unwrap_err().retry(), Retry::Never);
    }
}
