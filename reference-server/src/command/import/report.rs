//! Reports of an import, as text or as a line of JSON.

use std::{fmt::Write as _, path::Path};

use serde_json::{Value, json};
use transcript_core::captions::Occurrences;
use verbatim::{ImportEffect, ImportOutcome};

use super::super::video_name;

/// Describes what was imported, what was unreadable, and the effect on each track selector.
pub(super) fn to_text(imported: &ImportOutcome, dry_run: bool) -> String {
    let video = video_name(&imported.video);
    if let Some(effect) = imported.withdrawal {
        let state = match (effect, dry_run) {
            (ImportEffect::Unchanged, _) => "withdrawn already",
            (_, true) => "would be withdrawn",
            (_, false) => "withdrawn",
        };
        return format!("{video}: {state}\n");
    }
    let mut text = format!("{video}: {} segments read\n", imported.segments);
    for flaw in flaws(imported) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{flaw}");
    }
    for selector in &imported.selectors {
        let name = match selector.selector.as_str() {
            "default" => "default transcript".to_owned(),
            "und" => "transcript in an unnamed language".to_owned(),
            name => match name.strip_prefix("translation:") {
                Some(tag) => format!("translation into {tag}"),
                None => format!("transcript in {name}"),
            },
        };
        let effect = match (selector.effect, dry_run) {
            (ImportEffect::Added, false) => "imported",
            (ImportEffect::Added, true) => "would be imported",
            (ImportEffect::Replaced, false) => "replaced",
            (ImportEffect::Replaced, true) => "would be replaced",
            (ImportEffect::Kept, _) => "kept as it was archived; --replace replaces it",
            (ImportEffect::Unchanged, _) => "archived already, with the same text",
        };
        let _ = writeln!(text, "{name}: {effect}");
    }
    text
}

/// Describes the flaws of the file, one sentence each.
pub(super) fn flaws(imported: &ImportOutcome) -> Vec<String> {
    let ImportOutcome { unreadable, left_out, encoding, .. } = imported;
    let mut flaws = Vec::new();
    if let Some(encoding) = encoding {
        flaws.push(format!("the file is not UTF-8; it was read as {encoding}: check its letters"));
    }
    if left_out.count > 0 {
        let what = if left_out.count == 1 { "cue was left out: its" } else { "cues were left out: their" };
        // Only formats with lines have no other reason.
        let or_why =
            if left_out.lines.is_empty() { ", or the file is TTML in several languages" } else { "" };
        let lines = line_numbers(left_out);
        flaws.push(format!("{} {what} times cannot be read{or_why}{lines}", left_out.count));
    }
    if unreadable.count > 0 {
        let what = if unreadable.count == 1 { "character is" } else { "characters are" };
        flaws.push(format!(
            "{} {what} unreadable, and U+FFFD now{}",
            unreadable.count,
            line_numbers(unreadable)
        ));
    }
    flaws
}

/// Formats line numbers: ` (lines 3, 5, …)`.
fn line_numbers(found: &Occurrences) -> String {
    let lines: Vec<String> = found.lines.iter().map(u64::to_string).collect();
    match lines.as_slice() {
        [] => String::new(),
        [one] if found.count == 1 => format!(" (line {one})"),
        _ if found.count > lines.len() as u64 => format!(" (lines {}, …)", lines.join(", ")),
        _ => format!(" (lines {})", lines.join(", ")),
    }
}

/// Formats the report as one line of JSON.
pub(super) fn to_json(file: &Path, imported: &ImportOutcome, dry_run: bool) -> String {
    let occurrences = |found: &Occurrences| json!({ "count": found.count, "lines": found.lines });
    let effect = |effect| match effect {
        ImportEffect::Added => "added",
        ImportEffect::Replaced => "replaced",
        ImportEffect::Kept => "kept",
        ImportEffect::Unchanged => "unchanged",
    };
    let selectors = imported
        .selectors
        .iter()
        .map(|selector| json!({ "wish": selector.selector, "effect": effect(selector.effect) }));
    let line = json!({
        "file": file.display().to_string(),
        "platform": imported.video.platform().as_str(),
        "videoId": imported.video.id(),
        "language": imported.language.as_str(),
        "segments": imported.segments,
        "leftOut": occurrences(&imported.left_out),
        "unreadable": occurrences(&imported.unreadable),
        "encoding": imported.encoding,
        "dryRun": dry_run,
        "withdrawal": imported.withdrawal.map(effect),
        "wishes": selectors.collect::<Vec<Value>>(),
    });
    format!("{line}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_numbers_list_known_lines() {
        for (count, lines, expect) in [
            (1, &[7][..], " (line 7)"),
            (2, &[7, 9], " (lines 7, 9)"),
            (3, &[7], " (lines 7, …)"),
            (9, &[1, 2, 3, 4, 5], " (lines 1, 2, 3, 4, 5, …)"),
            (2, &[], ""),
        ] {
            assert_eq!(line_numbers(&Occurrences { count, lines: lines.to_vec() }), expect);
        }
    }
}
