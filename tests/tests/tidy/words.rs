//! Nothing is left undone, nothing is switched off, and nothing speaks of one machine.

use anyhow::Result;
use syn::{
    Attribute, Macro,
    visit::{self, Visit},
};

use super::{Offence, Source, apply, check_planted, functions::parse, purity::line};

/// The tidy tests name what they forbid.
fn names_what_is_forbidden(source: &Source) -> bool {
    source.is_within("tests/tests/tidy")
}

fn contains_word(line: &str, word: &str) -> bool {
    let joins = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(word).any(|(place, _)| {
        let (before, after) = (line.get(..place), line.get(place + word.len()..));
        !joins(before.and_then(|text| text.chars().next_back()))
            && !joins(after.and_then(|text| text.chars().next()))
    })
}

fn postponed(source: &Source) -> Vec<Offence> {
    let marked = |line: &str| ["TODO", "FIXME", "XXX"].into_iter().find(|word| contains_word(line, word));
    let mend = |word| format!("{word}: do it now, or leave it out and say so in the documentation");
    source.lines().filter_map(|(line, text)| Some(source.offence(line, mend(marked(text)?)))).collect()
}

struct Unfinished<'a> {
    source: &'a Source,
    offences: Vec<Offence>,
}

impl<'ast> Visit<'ast> for Unfinished<'_> {
    fn visit_macro(&mut self, item: &'ast Macro) {
        let name = item.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
        if ["todo", "unimplemented", "dbg"].contains(&name.as_str()) {
            let mend = format!("{name}!: finish it");
            self.offences.push(self.source.offence(line(&item.path), mend));
        }
        visit::visit_macro(self, item);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if attribute.path().is_ident("ignore") {
            let mend = "an ignored test proves nothing: repair it, or assert what is true today";
            self.offences.push(self.source.offence(line(attribute.path()), mend));
        }
    }
}

fn unfinished(source: &Source) -> Vec<Offence> {
    let file = match parse(source) {
        Ok(file) => file,
        Err(offences) => return offences,
    };
    let mut unfinished = Unfinished { source, offences: Vec::new() };
    unfinished.visit_file(&file);
    unfinished.offences
}

/// Folders that exist on one machine only.
const MACHINE_FOLDERS: &[&str] = &["/work/", "/root/", "/home/", "/Users/", "/mnt/"];

/// Hosts that serve packages: where they come from is a matter of each machine's settings.
const REGISTRY_HOSTS: &[&str] =
    &["artifactory", "index.crates.io", "static.crates.io", "pythonhosted.org", "registry.npmjs.org"];

fn machine_paths(source: &Source) -> Vec<Offence> {
    // A longer path may go through a folder of that name: only one that begins so is a machine's.
    let begins = |text: &str, folder: &str| {
        text.match_indices(folder).any(|(place, _)| {
            let before = text.get(..place).and_then(|text| text.chars().next_back());
            !before.is_some_and(|c| c.is_alphanumeric() || "._-~}/".contains(c))
        })
    };
    source
        .lines()
        .filter(|(_, text)| MACHINE_FOLDERS.iter().any(|folder| begins(text, folder)))
        .map(|(line, _)| source.offence(line, "a path of one machine: make it relative, or a setting"))
        .collect()
}

fn registry_hosts(source: &Source) -> Vec<Offence> {
    source
        .lines()
        .filter(|(_, text)| REGISTRY_HOSTS.iter().any(|host| text.contains(host)))
        .map(|(line, _)| {
            source.offence(line, "a package registry's host: leave it to each machine's settings")
        })
        .collect()
}

#[test]
fn nothing_is_postponed() -> Result<()> {
    let about = |source: &Source| {
        source.has_extension(&["rs", "toml", "sql", "py", "md", "html", "css", "js", "sh", "yml"])
            && !names_what_is_forbidden(source)
    };
    apply(about, postponed)
}

#[test]
fn nothing_is_unfinished_or_ignored() -> Result<()> {
    apply(Source::is_rust, unfinished)
}

#[test]
fn no_path_of_one_machine_is_named() -> Result<()> {
    apply(|source| !names_what_is_forbidden(source), machine_paths)
}

#[test]
fn no_registry_host_is_named() -> Result<()> {
    apply(|source| !names_what_is_forbidden(source), registry_hosts)
}

#[test]
fn what_is_postponed_is_caught() {
    check_planted(
        postponed,
        "a.rs",
        "fn f() {} // TODO: more\n/* FIXME */\nlet xxx = 1; // XXX\n",
        &[1, 2, 3],
    );
    check_planted(postponed, "a.rs", "const TODOS: u8 = 1;\n// todo lists are fine\n", &[]);
}

#[test]
fn what_is_unfinished_is_caught() {
    let check = |text: &str, lines: &[usize]| check_planted(unfinished, "a.rs", text, lines);
    check("fn f() {\n    todo!()\n}", &[2]);
    check("fn f() {\n    std::unimplemented!(\"later\")\n}", &[2]);
    check("fn f() -> u8 {\n    dbg!(1)\n}", &[2]);
    check("#[test]\n#[ignore = \"slow\"]\nfn f() {}", &[2]);
    check("mod tests {\n    #[ignore]\n    fn f() {}\n}", &[2]);
    check("fn f() {\n    assert!(true, \"todo!\");\n}", &[]);
}

#[test]
fn a_path_of_one_machine_is_caught() {
    check_planted(machine_paths, "a.md", "see /work/notes\n`/home/me/x`\n\"/root/.cargo\"\n", &[1, 2, 3]);
    check_planted(machine_paths, "a.md", "https://a.test/work/x ./home/x docs/work/y /workshop/\n", &[]);
}

#[test]
fn a_registry_host_is_caught() {
    check_planted(registry_hosts, "a.toml", "url = \"https://static.crates.io/x\"\n", &[1]);
    check_planted(registry_hosts, "a.toml", "url = \"https://github.com/rust-lang/crates.io-index\"\n", &[]);
}
