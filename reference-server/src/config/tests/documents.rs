//! `docs/settings.md` and `deploy/verbatim.toml` have what the table of settings and the defaults say.
//!
//! With `UPDATE=1` the tests write the files.

use super::{
    super::{
        layers::variable,
        table::{SECTIONS, Section, Setting},
    },
    *,
};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/settings.md");
const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/verbatim.toml");
/// Width of a heading of the sample file, and of its comments without the leading characters.
const WIDTH: usize = 100;

/// Every setting with its effective value, by default.
fn defaults() -> Vec<(&'static Section, Vec<(&'static Setting, EffectiveSetting)>)> {
    let sources =
        SettingSources { data: "DATA".into(), file: None, environment: Vec::new(), flags: Vec::new() };
    let mut effective = Settings::load(sources).unwrap().effective.into_iter();
    let mut pairs = |section: &'static Section| {
        section.settings.iter().map(|setting| (setting, effective.next().unwrap())).collect()
    };
    SECTIONS.iter().map(|section| (section, pairs(section))).collect()
}

fn row(setting: &Setting, effective: &EffectiveSetting) -> String {
    let value = effective.value.as_ref().map_or("not set".to_owned(), |value| format!("`{value}`"));
    let allowed = match &effective.bounds {
        Some((from, to)) => format!("`{from}` to `{to}`"),
        None => setting.allowed.to_owned(),
    };
    let (name, description) = (setting.name, setting.description);
    let reload = if setting.is_reloadable { "reload" } else { "restart" };
    format!("| `{name}`<br>`{}` | {value} | {allowed} | {reload} | {description} |", variable(name))
}

/// Text without the marks of Markdown: code, and the targets of links.
fn plain(markdown: &str) -> String {
    let mut parts = markdown.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    let text = parts.fold(first, |text, part| text + part.split_once(')').map_or("", |(_, rest)| rest));
    text.replace(['`', '['], "")
}

fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().unwrap();
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + word.chars().count() < WIDTH - 2 {
            line.push_str(&format!(" {word}"));
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.iter().map(|line| format!("# {line}\n")).collect()
}

/// The sample file after its introduction.
fn sample() -> String {
    let mut text = String::new();
    for (section, settings) in defaults() {
        let title = format!("# {} ", section.title);
        text.push_str(&format!("{title:-<WIDTH$}\n\n"));
        if !section.note.is_empty() {
            text.push_str(&format!("{}\n", wrapped(section.note)));
        }
        for (setting, effective) in settings {
            text.push_str(&wrapped(&plain(setting.description)));
            match effective.value {
                Some(value) => text.push_str(&format!("#{} = {value}\n\n", setting.name)),
                None => text.push_str(&format!("# (not set)\n#{} = {}\n\n", setting.name, setting.example)),
            }
        }
    }
    text.truncate(text.trim_end().len() + 1);
    text
}

/// Compares a file with its expected content, or writes it.
fn check_file(path: &str, expected: &str) {
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, expected).unwrap();
    }
    let text = std::fs::read_to_string(path).unwrap();
    let first = text.lines().zip(expected.lines()).find(|(one, other)| one != other);
    assert!(text == expected, "{path} differs: run this test with UPDATE=1 and review it: {first:?}");
}

#[test]
fn settings_document_matches_table() {
    let document = std::fs::read_to_string(DOCUMENT).unwrap();
    let is_row = |line: &&str| line.starts_with("| `");
    // The rows of a section follow its heading and the text about it.
    let sections =
        document.split("\n## ").skip(1).filter(|section| section.lines().any(|line| is_row(&line)));
    let mut expected = document.clone();
    for ((section, settings), text) in defaults().into_iter().zip(sections) {
        assert!(text.starts_with(&format!("{}\n", section.title)), "{text}");
        let rows: Vec<_> = settings.iter().map(|(setting, effective)| row(setting, effective)).collect();
        let old: Vec<_> = text.lines().filter(is_row).collect();
        expected = expected.replacen(&old.join("\n"), &rows.join("\n"), 1);
    }
    let listed = expected.lines().filter(is_row).count();
    assert_eq!(listed, defaults().iter().map(|(_, settings)| settings.len()).sum::<usize>());
    check_file(DOCUMENT, &expected);
}

#[test]
fn sample_file_matches_table() {
    let text = std::fs::read_to_string(SAMPLE).unwrap();
    let (introduction, _) = text.split_once("# Server --").unwrap();
    check_file(SAMPLE, &format!("{introduction}{}", sample()));
}

#[test]
fn settings_have_description_and_allowed_values() {
    for (setting, effective) in defaults().into_iter().flat_map(|(_, settings)| settings) {
        let name = setting.name;
        assert_eq!(name, effective.name);
        assert!(setting.description.len() > 3, "{name}");
        assert_eq!(setting.allowed.is_empty(), effective.bounds.is_some(), "{name}");
        assert_eq!(setting.example.is_empty(), effective.value.is_some(), "{name}");
    }
}

#[test]
fn sample_file_has_default_and_valid_values() {
    let sample = std::fs::read_to_string(SAMPLE).unwrap();
    assert_eq!(load(&sample, &[], &[]).unwrap().effective, load("", &[], &[]).unwrap().effective);
    // All example values together are valid.
    let values = sample.lines().filter_map(|line| line.strip_prefix('#')).filter(|line| line.contains(" = "));
    let values = values.filter(|line| !line.starts_with(' '));
    let values = values.filter(|line| cfg!(feature = "otel") || !line.starts_with("traces.endpoint"));
    // It excludes `chat.embeddings_url`.
    let values = values.filter(|line| !line.starts_with("chat.embedding_model "));
    let all = values.collect::<Vec<_>>().join("\n");
    // Existing files, and a secret that is required by another setting.
    let all = all.replace("/etc/verbatim/roots.pem", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
    let all = all.replace("/etc/verbatim/messages", concat!(env!("CARGO_MANIFEST_DIR"), "/src/messages"));
    let settings = load(&all, &[("VERBATIM_STRIPE__WEBHOOK_SECRETS", "whsec_example")], &[]).unwrap();
    let is_left_out = |name| ["chat.embedding_model", "traces.endpoint"].contains(&name);
    assert!(settings.effective.iter().all(|one| one.value.is_some() || is_left_out(one.name)));
    let both = format!("{all}\nchat.embedding_model = \"models\"");
    let error = load(&both, &[("VERBATIM_STRIPE__WEBHOOK_SECRETS", "whsec_example")], &[]).unwrap_err();
    assert!(
        error.to_string().contains("chat.embedding_model: it is set, and chat.embeddings_url too"),
        "{error}"
    );
}
