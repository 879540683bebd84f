//! Writes the lists of generic words of the feature `chat` as texts. In a list of words each of them takes 40 bytes
//! more of a program: its address and length, and the entry that relocates the address.

use std::io;

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "chat")]
    generic_words::write()?;
    Ok(())
}

#[cfg(feature = "chat")]
mod generic_words {
    use std::{env, fmt::Write as _, fs, io, path::Path};

    /// Languages with a list, by primary tag; at most 32.
    const LANGUAGES: [&str; 27] = [
        "ar", "bg", "cs", "da", "de", "el", "en", "es", "fi", "fr", "hi", "hu", "id", "it", "ja", "ko", "nl",
        "no", "pl", "pt", "ro", "ru", "sv", "th", "tr", "uk", "zh",
    ];

    /// Writes an array of the languages, each with its words in lines.
    #[expect(clippy::disallowed_methods, reason = "Cargo names the folder in a variable")]
    pub(super) fn write() -> io::Result<()> {
        let mut code = String::from("[\n");
        for language in LANGUAGES {
            let words = stop_words::lookup(language).ok_or(io::ErrorKind::NotFound)?.join("\n");
            writeln!(code, "({language:?}, {words:?}),").map_err(io::Error::other)?;
        }
        code.push(']');
        let folder = env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
        fs::write(Path::new(&folder).join("generic_words.rs"), code)
    }
}
