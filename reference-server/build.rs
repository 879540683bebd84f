//! Compresses the fonts of PDF files, and names the commit in release builds where git can read the clone, unless a
//! packager does with `VERBATIM_COMMIT`.

use std::{env, io, path::Path, process::Command};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "documents")]
    fonts::compress()?;
    name_commit();
    Ok(())
}

/// The fonts of PDF files.
#[cfg(feature = "documents")]
mod fonts {
    use std::{
        env, fs,
        io::{self, Write as _},
        path::Path,
    };

    use flate2::{Compression, write::ZlibEncoder};

    /// Writes the fonts compressed.
    pub(super) fn compress() -> io::Result<()> {
        let folder = env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
        let fonts = [
            ("letters.zlib", dejavu::sans::regular()),
            ("emoji.zlib", epaint_default_fonts::NOTO_EMOJI_REGULAR),
        ];
        for (name, font) in fonts {
            let mut compressed = ZlibEncoder::new(Vec::new(), Compression::best());
            compressed.write_all(font)?;
            fs::write(Path::new(&folder).join(name), compressed.finish()?)?;
        }
        Ok(())
    }
}

fn name_commit() {
    println!("cargo::rerun-if-env-changed=VERBATIM_COMMIT");
    // A build for development would be repeated after each commit.
    if env::var_os("VERBATIM_COMMIT").is_some() || env::var("PROFILE").as_deref() != Ok("release") {
        return;
    }
    // An archive may have been unpacked into the clone of another project.
    if git(&["rev-parse", "--show-prefix"]).as_deref() != Some("reference-server/") {
        return;
    }
    if let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) {
        println!("cargo::rustc-env=VERBATIM_COMMIT={commit}");
    }
    // Cargo takes a file that does not exist for one that has changed.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|log| Path::new(log).exists()) {
        println!("cargo::rerun-if-changed={log}");
    }
}

/// What git prints; `None` if it fails or does not exist.
fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok().map(|text| text.trim().to_owned())
}
