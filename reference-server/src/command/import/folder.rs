//! Which files are imported: those that were named, and the captions in the folders that were.

use std::{
    fs::{self, DirEntry},
    io,
    path::{Path, PathBuf},
};

use super::{super::Failure, name::Name};

/// The endings of files that may have a transcript in them.
const ENDINGS: [&str; 10] = ["vtt", "srt", "ttml", "dfxp", "xml", "srv1", "srv2", "srv3", "json3", "json"];
/// The endings of files that lie beside captions and are none.
const BESIDE: [&str; 2] = [".info.json", ".live_chat.json"];
/// How deep folders are searched.
const DEPTH_MAX: usize = 64;
/// The most files that are imported at once.
const FILES_MAX: usize = 500_000;

/// The name of the file that says that its video is withdrawn.
pub(in crate::command) const WITHDRAWN: &str = "withdrawn.json";

/// All files to import, those of one video together, its English ones first: what comes first stays the
/// default. A withdrawal comes before all, so that nothing of its video is archived for a moment.
pub(super) fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if path == Path::new("-") {
            return Err(Failure::Wrong("standard input is read alone, not with other files".to_owned()));
        }
        let found = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
        if found.is_dir() {
            let root = path.canonicalize().map_err(|error| unreadable(path, &error))?;
            let before = files.len();
            search(path, &root, 0, &mut files)?;
            if files.len() == before {
                let endings = ENDINGS.join(", ");
                let message =
                    format!("{}: there is no file in this folder that ends in {endings}", path.display());
                return Err(Failure::Wrong(message));
            }
        } else {
            files.push(path.clone());
        }
    }
    files.sort_by_cached_key(|file| {
        let name = Name::read(file);
        let is_english = name.language.is_some_and(|language| language.is_english());
        let is_withdrawal = file.file_name().is_some_and(|name| name == WITHDRAWN);
        (
            file.parent().map(Path::to_owned),
            !is_withdrawal,
            name.base,
            !is_english,
            name.is_original,
            file.clone(),
        )
    });
    files.dedup();
    Ok(files)
}

fn search(folder: &Path, root: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    if depth > DEPTH_MAX {
        return Err(Failure::Wrong(format!("{}: folders are nested too deeply", folder.display())));
    }
    let entries = fs::read_dir(folder).map_err(|error| unreadable(folder, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| unreadable(folder, &error))?;
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let kind = entry.file_type().map_err(|error| unreadable(&entry.path(), &error))?;
        if kind.is_dir() {
            search(&entry.path(), root, depth + 1, files)?;
        } else if may_have_transcript(&entry.path()) && (kind.is_file() || leads_inside(&entry, root)) {
            if files.len() >= FILES_MAX {
                return Err(Failure::Wrong(format!("at most {FILES_MAX} files are imported at once")));
            }
            files.push(entry.path());
        }
    }
    Ok(())
}

/// Whether a link leads to a file within the folder. Links to folders are never followed: what is in them
/// is found where it is.
fn leads_inside(entry: &DirEntry, root: &Path) -> bool {
    let target = entry.path().canonicalize();
    target.is_ok_and(|target| target.starts_with(root) && target.is_file())
}

fn may_have_transcript(file: &Path) -> bool {
    let name = file.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let ending = name.rsplit_once('.').map(|(_, ending)| ending).unwrap_or_default();
    ENDINGS.contains(&ending) && !BESIDE.iter().any(|beside| name.ends_with(beside))
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::Wrong(format!("{}: {}", path.display(), super::unreadable(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(root: &Path) -> Vec<String> {
        let files = files(&[root.to_owned()]).unwrap();
        files.iter().map(|file| file.strip_prefix(root).unwrap().display().to_string()).collect()
    }

    #[test]
    fn captions_are_found_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("deep/er")).unwrap();
        fs::create_dir(root.join(".hidden")).unwrap();
        for file in [
            "T [dQw4w9WgXcQ].de.vtt",
            "T [dQw4w9WgXcQ].en.vtt",
            "T [dQw4w9WgXcQ].info.json",
            "T [dQw4w9WgXcQ].live_chat.json",
            "T [dQw4w9WgXcQ].mp4",
            "deep/er/A.SRT",
            ".hidden/b.srt",
            ".c.srt",
        ] {
            fs::write(root.join(file), "x").unwrap();
        }
        assert_eq!(found(root), ["T [dQw4w9WgXcQ].en.vtt", "T [dQw4w9WgXcQ].de.vtt", "deep/er/A.SRT"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_followed_out_of_the_folder() {
        use std::os::unix::fs::symlink;

        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret.vtt"), "x").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::write(root.join("a.vtt"), "x").unwrap();
        symlink(root.join("a.vtt"), root.join("inside.vtt")).unwrap();
        symlink(outside.path().join("secret.vtt"), root.join("file.vtt")).unwrap();
        symlink(outside.path(), root.join("folder")).unwrap();
        symlink(root, root.join("around")).unwrap();
        symlink(root.join("nowhere"), root.join("dangling.vtt")).unwrap();
        assert_eq!(found(root), ["a.vtt", "inside.vtt"]);
    }

    #[test]
    fn what_cannot_be_imported_is_said_before_anything_is() {
        let folder = tempfile::tempdir().unwrap();
        for paths in
            [vec![folder.path().to_owned()], vec!["/nothing/here".into()], vec!["-".into(), "a".into()]]
        {
            assert!(matches!(files(&paths), Err(Failure::Wrong(_))), "{paths:?}");
        }
    }
}
