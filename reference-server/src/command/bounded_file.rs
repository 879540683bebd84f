//! Files that commands read whole, up to a limit.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

/// Reads a file of at most `max` bytes; `-` is standard input.
pub(super) fn read(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let too_large = || io::Error::other(format!("it is larger than {max} bytes"));
    let (mut bytes, limit) = (Vec::new(), max.saturating_add(1));
    if is_stdin(path) {
        io::stdin().lock().take(limit).read_to_end(&mut bytes)?;
    } else {
        let file = File::open(path)?;
        if file.metadata()?.len() > max {
            return Err(too_large());
        }
        // A pipe does not state its size.
        file.take(limit).read_to_end(&mut bytes)?;
    }
    if bytes.len() as u64 > max { Err(too_large()) } else { Ok(bytes) }
}

/// The name of the file for messages.
pub(super) fn name(path: &Path) -> String {
    if is_stdin(path) { "standard input".to_owned() } else { path.display().to_string() }
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_above_limit_is_not_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "1234").unwrap();
        assert_eq!(read(file.path(), 4).unwrap(), b"1234");
        assert_eq!(read(file.path(), 3).unwrap_err().to_string(), "it is larger than 3 bytes");
    }
}
