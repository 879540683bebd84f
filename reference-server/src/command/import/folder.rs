//! Selects the files to import: named files, and caption files in named folders.

use std::{
    fs::{self, DirEntry},
    io,
    path::{Path, PathBuf},
};

use super::{super::CommandError, name::CaptionFileName};

/// Extensions of files that may contain a transcript.
const EXTENSIONS: [&str; 12] =
    ["vtt", "srt", "sbv", "ttml", "dfxp", "itt", "xml", "srv1", "srv2", "srv3", "json3", "json"];
/// Endings of files next to captions that are not captions.
const EXCLUDED: [&str; 2] = [".info.json", ".live_chat.json"];
/// Maximum depth of nested folders.
const DEPTH_MAX: usize = 64;
/// Maximum number of files of one import.
const FILES_MAX: usize = 500_000;

/// File that marks a video as withdrawn.
pub(in crate::command) const WITHDRAWN: &str = "withdrawn.json";

/// Returns all files to import, grouped by video, English ones first.
///
/// The first transcript of a video becomes its default. Withdrawals come before all others of a folder, so that no
/// transcript of their video is archived.
pub(super) fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, CommandError> {
    let mut files = Vec::new();
    for path in paths {
        if path == Path::new("-") {
            return Err(CommandError::Wrong("standard input cannot be combined with other files".to_owned()));
        }
        let metadata = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
        if metadata.is_dir() {
            let root = path.canonicalize().map_err(|error| unreadable(path, &error))?;
            let before = files.len();
            search(path, &root, 0, &mut files)?;
            if files.len() == before {
                let extensions = EXTENSIONS.join(", ");
                let message = format!("{}: no file in this folder ends in {extensions}", path.display());
                return Err(CommandError::Wrong(message));
            }
        } else {
            files.push(path.clone());
        }
    }
    files.sort_by_cached_key(|file| {
        let name = CaptionFileName::read(file);
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

fn search(folder: &Path, root: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), CommandError> {
    if depth > DEPTH_MAX {
        return Err(CommandError::Wrong(format!("{}: folders are nested too deeply", folder.display())));
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
        } else if may_have_transcript(&entry.path()) && (kind.is_file() || is_inside(&entry, root)) {
            if files.len() >= FILES_MAX {
                return Err(CommandError::Wrong(format!(
                    "at most {FILES_MAX} files can be imported at once"
                )));
            }
            files.push(entry.path());
        }
    }
    Ok(())
}

/// Whether a symbolic link leads to a file within the folder. Links to folders are not followed.
fn is_inside(entry: &DirEntry, root: &Path) -> bool {
    let target = entry.path().canonicalize();
    target.is_ok_and(|target| target.starts_with(root) && target.is_file())
}

fn may_have_transcript(file: &Path) -> bool {
    let name = file.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let extension = name.rsplit_once('.').map(|(_, extension)| extension).unwrap_or_default();
    EXTENSIONS.contains(&extension) && !EXCLUDED.iter().any(|excluded| name.ends_with(excluded))
}

fn unreadable(path: &Path, error: &io::Error) -> CommandError {
    CommandError::Wrong(format!("{}: {}", path.display(), super::unreadable(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found_files(root: &Path) -> Vec<String> {
        let files = files(&[root.to_owned()]).unwrap();
        files.iter().map(|file| file.strip_prefix(root).unwrap().display().to_string()).collect()
    }

    #[test]
    fn folder_captions_are_found_in_order() {
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
            "deep/er/B.sbv",
            "deep/er/C.itt",
            ".hidden/b.srt",
            ".c.srt",
        ] {
            fs::write(root.join(file), "x").unwrap();
        }
        assert_eq!(
            found_files(root),
            [
                "T [dQw4w9WgXcQ].en.vtt",
                "T [dQw4w9WgXcQ].de.vtt",
                "deep/er/A.SRT",
                "deep/er/B.sbv",
                "deep/er/C.itt"
            ]
        );
    }

    #[cfg(unix)]
    #[test]
    fn folder_links_to_outside_are_not_followed() {
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
        assert_eq!(found_files(root), ["a.vtt", "inside.vtt"]);
    }

    #[test]
    fn folder_invalid_paths_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        for paths in
            [vec![folder.path().to_owned()], vec!["/nothing/here".into()], vec!["-".into(), "a".into()]]
        {
            assert!(matches!(files(&paths), Err(CommandError::Wrong(_))), "{paths:?}");
        }
    }
}
