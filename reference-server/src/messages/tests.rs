use super::*;

/// The source files of the crate.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Sections that are in English only. They are shown in English until they are translated.
const UNTRANSLATED: [&str; 0] = [];

#[test]
fn messages_every_language_has_every_message() {
    let languages: Vec<Messages> = SOURCES.iter().map(|source| Messages::parse(source).unwrap()).collect();
    let [english, others @ ..] = languages.as_slice() else { panic!("no language") };
    assert_eq!(english.tag, "en");
    for other in others {
        let is_translated =
            |key: &&str| UNTRANSLATED.iter().all(|section| !key.starts_with(&format!("{section}.")));
        let expected: BTreeSet<_> = english.keys().filter(is_translated).collect();
        let found: BTreeSet<_> = other.keys().filter(is_translated).collect();
        let missing: Vec<_> = expected.difference(&found).collect();
        let unknown: Vec<_> = found.difference(&expected).collect();
        assert!(missing.is_empty() && unknown.is_empty(), "{}: {missing:?} {unknown:?}", other.tag);
        for key in expected {
            let of = |messages: &Messages| placeholders(messages.find(key).unwrap()).len();
            let same = placeholders(english.find(key).unwrap()) == placeholders(other.find(key).unwrap());
            assert!(same, "{} {key}: {} placeholders, {} in English", other.tag, of(other), of(english));
        }
    }
}

/// A failed attempt is counted for the network, and not for the visitor.
#[test]
fn messages_of_failures_do_not_say_that_nothing_was_counted() {
    let languages = [
        ("your own free transcripts", "Nothing was counted"),
        ("Ihre eigenen kostenlosen Transkripte", "nichts gezählt"),
        ("tus propias transcripciones", "descontado nada"),
        ("vos propres transcriptions", "Rien n’a été compté"),
        ("あなた自身の無料分", "回数には数えられていません"),
        ("النصوص المجانية الخاصة بك", "لم يُحتسب شيء"),
    ];
    for (source, (own, nothing)) in SOURCES.iter().zip(languages) {
        let messages = Messages::parse(source).unwrap();
        for key in messages.keys().filter(|key| key.starts_with("failure.")) {
            let text = messages.find(key).unwrap();
            let is_attempt = ["rate_limited", "fetch_error"].iter().any(|name| key.ends_with(name));
            assert!(!text.contains(nothing), "{} {key}: {text}", messages.tag);
            assert!(!is_attempt || text.contains(own), "{} {key}: {text}", messages.tag);
        }
    }
}

/// A line must not begin with a punctuation mark.
#[test]
fn messages_french_punctuation_has_no_break_space() {
    let french = Messages::parse(SOURCES[3]).unwrap();
    for key in french.keys() {
        let text = french.find(key).unwrap();
        let breaks = [" :", " ;", " ?", " !", " »", " %", "« "].into_iter().any(|mark| text.contains(mark));
        assert!(!breaks, "{key}: {text}");
    }
}

#[test]
fn messages_code_names_exactly_the_messages_of_the_file() {
    let english = Messages::parse(SOURCES[0]).unwrap();
    let mut files = Vec::new();
    sources(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")), &mut files);
    let text: String = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let literals: BTreeSet<&str> = text.split('"').collect();
    for key in english.keys() {
        assert!(literals.contains(key), "no code uses the message {key}");
    }
    for call in ["text", "fill", "markup"] {
        for rest in text.split(&format!("context.{call}(")).skip(1) {
            let Some(literal) = rest.trim_start().strip_prefix('"') else { continue };
            let key = literal.split('"').next().unwrap();
            assert!(english.find(key).is_some(), "the file has no message {key}");
        }
    }
}

#[test]
fn message_placeholders_are_filled_and_escaped() {
    let message = "{count} of <all> {what}: {";
    assert_eq!(fill(message, &[("count", "{what}"), ("x", "y")]), "{what} of <all> {what}: {");
    let link = html! { a href="x" { "<b>" } };
    let filled = fill_markup(message, &[("what", link)]).into_string();
    assert_eq!(filled, "{count} of &lt;all&gt; <a href=\"x\">&lt;b&gt;</a>: {");
}

#[test]
fn message_file_errors_name_the_place() {
    for (source, error) in [
        ("[language]\ntag = \"x\"\nname = \"X\"\n", "language.direction is missing"),
        ("tag = 1", "tag is not a section"),
        ("[home]\ntitle = 1", "home.title is not text"),
    ] {
        assert_eq!(Messages::parse(source).unwrap_err(), error);
    }
    assert!(Messages::parse("[").is_err());
}

#[test]
fn message_folder_adds_and_replaces_languages() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let head = |tag: &str| format!("[language]\ntag = \"{tag}\"\nname = \"X\"\ndirection = \"ltr\"\n");
    write("de.toml", &format!("{}[frame]\npricing = \"Was es kostet\"\n", head("de")));
    write("pt.toml", &format!("{}[frame]\nversion = \"Versão {{version}}\"\n", head("pt")));
    write("notes.txt", "[");
    let mut languages = Messages::built_in();
    let count = languages.len();
    Messages::extend(&mut languages, &Messages::read_folder(folder.path()).unwrap());
    assert_eq!((languages.len(), languages[count].tag.as_str()), (count + 1, "pt"));
    let german = languages.iter().find(|messages| messages.tag == "de").unwrap();
    assert_eq!(german.find("frame.pricing"), Some("Was es kostet"));
    assert_eq!(german.find("frame.terms"), Some("Nutzungsbedingungen"));
    for (text, why) in [
        ("[frame]\nversion = \"Versão\"\n", "frame.version has other placeholders"),
        ("[frame]\nversions = \"x\"\n", "frame.versions is no message"),
    ] {
        write("pt.toml", &format!("{}{text}", head("pt")));
        let error = Messages::read_folder(folder.path()).unwrap_err();
        assert!(error.contains("pt.toml: ") && error.contains(why), "{error}");
    }
    assert!(Messages::read_folder(&folder.path().join("none")).is_err());
}
