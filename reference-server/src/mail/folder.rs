//! The outbox folder: for trying things out, and for operators who deliver mail by other means.

use std::{
    fs::{self, File, Permissions},
    io::{self, Write},
    path::{Path, PathBuf},
    time::SystemTime,
};

use async_trait::async_trait;
use lettre::message::Mailbox;
use transcript_core::{
    Error, Result,
    accounts::mail::{Mail, Mailer},
};

use super::message::{message, name};

/// Writes each mail into a file of its own, which only the operator can read. Nothing is delivered.
#[derive(Debug)]
pub(crate) struct OutboxFolder {
    folder: PathBuf,
    from: Mailbox,
}

impl OutboxFolder {
    /// Mails go to this folder, which is made when the first one comes.
    pub(crate) fn new(folder: PathBuf, from: Mailbox) -> Self {
        Self { folder, from }
    }
}

#[async_trait]
impl Mailer for OutboxFolder {
    async fn send(&self, mail: Mail) -> Result<()> {
        let bytes = message(&mail, &self.from)?.formatted();
        // The folder's list is that of the mails, the oldest first.
        let moment = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
        let file = format!("{}-{}.eml", moment.replace([':', '-'], ""), &name(&mail)[..8]);
        let folder = self.folder.clone();
        let written = tokio::task::spawn_blocking(move || write(&folder, &file, &bytes)).await;
        match written {
            Ok(Ok(path)) => {
                tracing::info!("no mail server is set: a mail was written to {}", path.display());
                Ok(())
            }
            Ok(Err(error)) => {
                let folder = self.folder.display();
                Err(Error::unavailable(format!("the mail cannot be written to {folder}: {error}")))
            }
            Err(_) => Err(Error::unavailable("the mail was not written: the program is ending")),
        }
    }
}

/// Writes a whole file, or none: it has its name once it is on the disk.
fn write(folder: &Path, file: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    only_for_the_owner(folder)?;
    // Temporary files are made with the mode 0600.
    let mut part = tempfile::Builder::new().prefix(".").suffix(".part").tempfile_in(folder)?;
    part.write_all(bytes)?;
    part.as_file().sync_all()?;
    let path = folder.join(file);
    part.persist(&path).map_err(|error| error.error)?;
    File::open(folder)?.sync_all()?;
    Ok(path)
}

#[cfg(unix)]
fn only_for_the_owner(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder, Permissions::from_mode(0o700))
}

#[cfg(not(unix))]
fn only_for_the_owner(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use transcript_core::Retry;

    use super::*;

    fn mail(to: &str) -> Mail {
        let text = |text: &str| text.to_owned();
        Mail { to: text(to), subject: text("S"), text: text("T\n"), html: text("<p>T</p>\n") }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn mails_are_files_that_only_the_owner_reads() {
        use std::os::unix::fs::PermissionsExt;
        let data = tempfile::tempdir().unwrap();
        let folder = data.path().join("a/outbox");
        let mailer = OutboxFolder::new(folder.clone(), "a@b.example".parse().unwrap());
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
    async fn a_folder_that_cannot_be_written_is_tried_again_and_named() {
        let data = tempfile::tempdir().unwrap();
        let folder = data.path().join("outbox");
        fs::write(&folder, "a file").unwrap();
        let mailer = OutboxFolder::new(folder.clone(), "a@b.example".parse().unwrap());
        let refused = mailer.send(mail("ann@example.org")).await.unwrap_err();
        assert_eq!(refused.retry(), Retry::Backoff);
        assert!(refused.to_string().contains(&folder.display().to_string()), "{refused}");
        assert_eq!(mailer.send(mail("nobody")).await.unwrap_err().retry(), Retry::Never);
    }
}
