//! Generates the bindings and builds the packages for apps:
//! `cargo run -p verbatim-bindings-uniffi --features shipping --bin packager -- help`.

mod android;
mod apple;
mod comments;
mod generate;
mod jvm;
mod patch_kotlin;
mod sizes;
mod swift;
mod tools;

use std::path::PathBuf;

use anyhow::{Result, bail};

const HELP: &str = "\
packager generate LIBRARY LANGUAGE FOLDER   generate Kotlin, Swift or Python from an unstripped library
packager jvm FOLDER [LIBRARY [OTHERS]]      package the jar for a JVM on this machine, including the library, and the
                                            libraries of all other machines from OTHERS
packager library FOLDER                     build the library of this machine, for OTHERS of `jvm`
packager android FOLDER                     build the AAR for four ABIs; requires cargo-ndk and an NDK of r28 or later
packager aar FOLDER LIBRARIES CLASSES       package the AAR from existing libraries, each in a folder named after its
                                            ABI, and a jar with the classes
packager swift FOLDER [LIBRARY]             package the Swift package for Linux, including the library of this machine
packager apple FOLDER                       build the xcframework and the Swift package; requires macOS with Xcode
packager release-swift FOLDER URL ARCHIVES  move the xcframework of a Swift package into an archive for URL, the folder
                                            of the release's files, and name its address and checksum in the package
packager sizes                              measure the size of the stripped library by feature
";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["generate", library, language, folder] => {
            generate::bindings(library.as_ref(), generate::parse_language(language)?, folder.as_ref())
        }
        ["jvm", folder] => jvm::pack(folder.as_ref(), None, None),
        ["jvm", folder, library] => jvm::pack(folder.as_ref(), Some(PathBuf::from(library)), None),
        ["jvm", folder, library, others] => {
            jvm::pack(folder.as_ref(), Some(PathBuf::from(library)), Some(others.as_ref()))
        }
        ["library", folder] => jvm::build_library(folder.as_ref()),
        ["android", folder] => android::pack(folder.as_ref()),
        ["aar", folder, libraries, classes] => {
            android::package(folder.as_ref(), libraries.as_ref(), classes.as_ref())
        }
        ["swift", folder] => swift::pack(folder.as_ref(), None),
        ["swift", folder, library] => swift::pack(folder.as_ref(), Some(PathBuf::from(library))),
        ["apple", folder] => apple::pack(folder.as_ref()),
        ["release-swift", folder, url, archives] => swift::release(folder.as_ref(), url, archives.as_ref()),
        ["sizes"] => sizes::print_table(),
        ["help"] => {
            tools::print(HELP);
            Ok(())
        }
        _ => bail!("unknown command; commands:\n{HELP}"),
    }
}
