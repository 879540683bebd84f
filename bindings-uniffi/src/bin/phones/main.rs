//! Generates the bindings, and packs what apps take: `cargo run -p bindings-uniffi --features shipping --bin phones -- help`.

mod android;
mod apple;
mod generate;
mod jvm;
mod mend;
mod sizes;
mod swift;
mod tools;

use std::path::PathBuf;

use anyhow::{Result, bail};

const HELP: &str = "\
phones generate LIBRARY LANGUAGE FOLDER   Kotlin, Swift or Python from a library that was built
phones jvm FOLDER [LIBRARY]               the jar for a JVM on this machine, with the library in it
phones android FOLDER                     the AAR with four ABIs; needs cargo-ndk and an NDK of r28 or later
phones aar FOLDER LIBRARIES CLASSES       the same of libraries that were built, each in a folder of its ABI's name, and
                                          of a jar with the classes
phones swift FOLDER [LIBRARY]             the Swift package for Linux, with this machine's library
phones apple FOLDER                       the xcframework and the Swift package; needs macOS with Xcode
phones sizes                              what the stripped library takes, feature by feature
";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["generate", library, language, folder] => {
            generate::bindings(library.as_ref(), generate::language(language)?, folder.as_ref())
        }
        ["jvm", folder] => jvm::pack(folder.as_ref(), None),
        ["jvm", folder, library] => jvm::pack(folder.as_ref(), Some(PathBuf::from(library))),
        ["android", folder] => android::pack(folder.as_ref()),
        ["aar", folder, libraries, classes] => {
            android::join(folder.as_ref(), libraries.as_ref(), classes.as_ref())
        }
        ["swift", folder] => swift::pack(folder.as_ref(), None),
        ["swift", folder, library] => swift::pack(folder.as_ref(), Some(PathBuf::from(library))),
        ["apple", folder] => apple::pack(folder.as_ref()),
        ["sizes"] => sizes::table(),
        ["help"] => {
            tools::say(HELP);
            Ok(())
        }
        _ => bail!("what is to be done?\n{HELP}"),
    }
}
