//! No postponed or unfinished work, no ignored tests, no paths or hosts of one machine, no long lines of comments.

use anyhow::Result;
use syn::{
    Attribute, Macro,
    visit::{self, Visit},
};

use super::{SourceFile, Violation, apply, check_planted, functions::parse, purity::line};

/// Whether the file belongs to the tidy tests, which contain the forbidden words.
fn is_tidy_test(source: &SourceFile) -> bool {
    source.is_within("tests/tests/tidy")
}

pub(super) fn contains_word(line: &str, word: &str) -> bool {
    let joins = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(word).any(|(start, _)| {
        let (before, after) = (line.get(..start), line.get(start + word.len()..));
        !joins(before.and_then(|text| text.chars().next_back()))
            && !joins(after.and_then(|text| text.chars().next()))
    })
}

fn postponed_work(source: &SourceFile) -> Vec<Violation> {
    let marked = |line: &str| ["TODO", "FIXME", "XXX"].into_iter().find(|word| contains_word(line, word));
    let advice = |word| format!("{word}: do it now, or document the limit instead");
    source.lines().filter_map(|(line, text)| Some(source.violation(line, advice(marked(text)?)))).collect()
}

struct UnfinishedVisitor<'a> {
    source: &'a SourceFile,
    violations: Vec<Violation>,
}

impl<'ast> Visit<'ast> for UnfinishedVisitor<'_> {
    fn visit_macro(&mut self, item: &'ast Macro) {
        let name = item.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
        if ["todo", "unimplemented", "dbg"].contains(&name.as_str()) {
            let advice = format!("{name}!: finish it");
            self.violations.push(self.source.violation(line(&item.path), advice));
        }
        visit::visit_macro(self, item);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if attribute.path().is_ident("ignore") {
            let advice = "an ignored test proves nothing: repair it, or assert the present behavior";
            self.violations.push(self.source.violation(line(attribute.path()), advice));
        }
    }
}

fn unfinished_code(source: &SourceFile) -> Vec<Violation> {
    let file = match parse(source) {
        Ok(file) => file,
        Err(violations) => return violations,
    };
    let mut unfinished_code = UnfinishedVisitor { source, violations: Vec::new() };
    unfinished_code.visit_file(&file);
    unfinished_code.violations
}

/// Folders that exist on single machines only.
const MACHINE_FOLDERS: &[&str] = &["/work/", "/root/", "/home/", "/Users/", "/mnt/"];

/// Hosts of package registries; each machine configures its own.
const REGISTRY_HOSTS: &[&str] =
    &["artifactory", "index.crates.io", "static.crates.io", "pythonhosted.org", "registry.npmjs.org"];

fn machine_paths(source: &SourceFile) -> Vec<Violation> {
    // Only a path that begins with the folder is a machine's; a longer path may contain a folder of that name.
    let begins = |text: &str, folder: &str| {
        text.match_indices(folder).any(|(start, _)| {
            let before = text.get(..start).and_then(|text| text.chars().next_back());
            !before.is_some_and(|c| c.is_alphanumeric() || "._-~}/".contains(c))
        })
    };
    source
        .lines()
        .filter(|(_, text)| MACHINE_FOLDERS.iter().any(|folder| begins(text, folder)))
        .map(|(line, _)| source.violation(line, "a path of one machine: use a relative path or a setting"))
        .collect()
}

fn registry_hosts(source: &SourceFile) -> Vec<Violation> {
    source
        .lines()
        .filter(|(_, text)| REGISTRY_HOSTS.iter().any(|host| text.contains(host)))
        .map(|(line, _)| {
            source.violation(line, "a package registry's host: leave it to the settings of each machine")
        })
        .collect()
}

/// The longest line of a comment, in characters. rustfmt does not wrap comments.
const COMMENT_COLUMNS_MAX: usize = 120;

fn long_comments(source: &SourceFile) -> Vec<Violation> {
    let is_long = |text: &str| {
        let comment = text.trim_start();
        // A row of a table is one line.
        text.chars().count() > COMMENT_COLUMNS_MAX
            && comment.starts_with("//")
            && !comment.trim_start_matches(['/', '!', ' ']).starts_with('|')
    };
    let advice = format!("break the comment after at most {COMMENT_COLUMNS_MAX} columns");
    let long = source.lines().filter(|(_, text)| is_long(text));
    long.map(|(line, _)| source.violation(line, advice.as_str())).collect()
}

#[test]
fn tidy_comments_have_at_most_120_columns() -> Result<()> {
    apply(SourceFile::is_rust, long_comments)
}

#[test]
fn tidy_tree_has_no_postponed_work() -> Result<()> {
    let about = |source: &SourceFile| {
        source.has_extension(&["rs", "toml", "sql", "py", "md", "html", "css", "js", "sh", "yml"])
            && !is_tidy_test(source)
    };
    apply(about, postponed_work)
}

#[test]
fn tidy_tree_has_no_unfinished_code_or_ignored_test() -> Result<()> {
    apply(SourceFile::is_rust, unfinished_code)
}

#[test]
fn tidy_tree_has_no_machine_paths() -> Result<()> {
    apply(|source| !is_tidy_test(source), machine_paths)
}

#[test]
fn tidy_tree_has_no_registry_hosts() -> Result<()> {
    apply(|source| !is_tidy_test(source), registry_hosts)
}

#[test]
fn tidy_postponed_work_is_reported() {
    check_planted(
        postponed_work,
        "a.rs",
        "fn f() {} // TODO: more\n/* FIXME */\nlet xxx = 1; // XXX\n",
        &[1, 2, 3],
    );
    check_planted(postponed_work, "a.rs", "const TODOS: u8 = 1;\n// todo lists are fine\n", &[]);
}

#[test]
fn tidy_unfinished_code_is_reported() {
    let check = |text: &str, lines: &[usize]| check_planted(unfinished_code, "a.rs", text, lines);
    check("fn f() {\n    todo!()\n}", &[2]);
    check("fn f() {\n    std::unimplemented!(\"later\")\n}", &[2]);
    check("fn f() -> u8 {\n    dbg!(1)\n}", &[2]);
    check("#[test]\n#[ignore = \"slow\"]\nfn f() {}", &[2]);
    check("mod tests {\n    #[ignore]\n    fn f() {}\n}", &[2]);
    check("fn f() {\n    assert!(true, \"todo!\");\n}", &[]);
}

#[test]
fn tidy_long_comment_is_reported() {
    let check = |text: &str, lines: &[usize]| check_planted(long_comments, "a.rs", text, lines);
    check(&format!("//! {}é\n    /// {}\n", "a".repeat(115), "a".repeat(113)), &[2]);
    check(&format!("//! | {} |\nconst A: &str = \"{}\";\n", "a".repeat(120), "a".repeat(120)), &[]);
}

#[test]
fn tidy_machine_path_is_reported() {
    check_planted(machine_paths, "a.md", "see /work/notes\n`/home/me/x`\n\"/root/.cargo\"\n", &[1, 2, 3]);
    check_planted(machine_paths, "a.md", "https://a.test/work/x ./home/x docs/work/y /workshop/\n", &[]);
}

#[test]
fn tidy_registry_host_is_reported() {
    check_planted(registry_hosts, "a.toml", "url = \"https://static.crates.io/x\"\n", &[1]);
    check_planted(registry_hosts, "a.toml", "url = \"https://github.com/rust-lang/crates.io-index\"\n", &[]);
}
