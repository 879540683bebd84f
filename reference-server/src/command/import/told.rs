//! What is told of an import: in sentences for people, or as a line of JSON.

use std::{fmt::Write as _, path::Path};

use serde_json::{Value, json};
use transcript_core::captions::Occurrences;
use verbatim::{Effect, Imported};

/// What was imported, what of the file could not be read, and what became of each wish.
pub(super) fn in_sentences(imported: &Imported, dry_run: bool) -> String {
    if let Some(effect) = imported.withdrawal {
        let became = match (effect, dry_run) {
            (Effect::Unchanged, _) => "withdrawn already",
            (_, true) => "would be withdrawn",
            (_, false) => "withdrawn",
        };
        return format!("{}: {became}\n", imported.video);
    }
    let mut text = format!("{}: {} segments read\n", imported.video, imported.segments);
    for flaw in flaws(imported) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{flaw}");
    }
    for wish in &imported.wishes {
        let name = match wish.wish.as_str() {
            "default" => "default transcript".to_owned(),
            "und" => "transcript in an unnamed language".to_owned(),
            tag => format!("transcript in {tag}"),
        };
        let effect = match (wish.effect, dry_run) {
            (Effect::Added, false) => "imported",
            (Effect::Added, true) => "would be imported",
            (Effect::Replaced, false) => "replaced",
            (Effect::Replaced, true) => "would be replaced",
            (Effect::Kept, _) => "kept as it was archived; --replace replaces it",
            (Effect::Unchanged, _) => "archived already, with the same words",
        };
        let _ = writeln!(text, "{name}: {effect}");
    }
    text
}

/// What of the file is not in the transcript as it should be, a sentence each.
pub(super) fn flaws(imported: &Imported) -> Vec<String> {
    let Imported { unreadable, left_out, .. } = imported;
    let mut flaws = Vec::new();
    if left_out.count > 0 {
        let what = if left_out.count == 1 { "cue was left out: its" } else { "cues were left out: their" };
        flaws.push(format!("{} {what} times cannot be read{}", left_out.count, places(left_out)));
    }
    if unreadable.count > 0 {
        let what = if unreadable.count == 1 { "character is" } else { "characters are" };
        flaws.push(format!("{} {what} unreadable, and U+FFFD now{}", unreadable.count, places(unreadable)));
    }
    flaws
}

/// Where they are: ` (lines 3, 5, …)`.
fn places(found: &Occurrences) -> String {
    let lines: Vec<String> = found.lines.iter().map(u64::to_string).collect();
    match lines.as_slice() {
        [] => String::new(),
        [one] if found.count == 1 => format!(" (line {one})"),
        _ if found.count > lines.len() as u64 => format!(" (lines {}, …)", lines.join(", ")),
        _ => format!(" (lines {})", lines.join(", ")),
    }
}

/// The same, as one line of JSON.
pub(super) fn in_json(file: &Path, imported: &Imported, dry_run: bool) -> String {
    let occurrences = |found: &Occurrences| json!({ "count": found.count, "lines": found.lines });
    let effect = |effect| match effect {
        Effect::Added => "added",
        Effect::Replaced => "replaced",
        Effect::Kept => "kept",
        Effect::Unchanged => "unchanged",
    };
    let wishes =
        imported.wishes.iter().map(|wish| json!({ "wish": wish.wish, "effect": effect(wish.effect) }));
    let line = json!({
        "file": file.display().to_string(),
        "platform": imported.video.platform().as_str(),
        "videoId": imported.video.id(),
        "language": imported.language.as_str(),
        "segments": imported.segments,
        "leftOut": occurrences(&imported.left_out),
        "unreadable": occurrences(&imported.unreadable),
        "dryRun": dry_run,
        "withdrawal": imported.withdrawal.map(effect),
        "wishes": wishes.collect::<Vec<Value>>(),
    });
    format!("{line}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_as_far_as_they_are_known() {
        for (count, lines, expect) in [
            (1, &[7][..], " (line 7)"),
            (2, &[7, 9], " (lines 7, 9)"),
            (3, &[7], " (lines 7, …)"),
            (9, &[1, 2, 3, 4, 5], " (lines 1, 2, 3, 4, 5, …)"),
            (2, &[], ""),
        ] {
            assert_eq!(places(&Occurrences { count, lines: lines.to_vec() }), expect);
        }
    }
}
