//! Seeds: inputs in the project's own test data.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// Longer files are no seeds: the fuzzer would only see their beginning.
pub(crate) const SEED_BYTES_MAX: u64 = 64 << 10;

/// These texts as seeds.
pub(crate) fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// All recorded files with one of these extensions in a platform's folder.
///
/// The folders are `tests/recordings`, and `VERBATIM_RECORDINGS` if it is set.
pub(crate) fn recordings(platform: &str, extensions: &[&str]) -> Vec<Vec<u8>> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/recordings");
    let roots = [Some(own), env::var_os("VERBATIM_RECORDINGS").map(PathBuf::from)];
    let mut files = Vec::new();
    for root in roots.into_iter().flatten() {
        add_files(&root.join(platform), &mut files);
    }
    let is_wanted = |file: &&PathBuf| {
        let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        extensions.contains(&extension) && file.metadata().is_ok_and(|file| file.len() <= SEED_BYTES_MAX)
    };
    files.iter().filter(is_wanted).filter_map(|file| fs::read(file).ok()).collect()
}

fn add_files(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            add_files(&path, files);
        } else {
            files.push(path);
        }
    }
}
