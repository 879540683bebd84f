//! No file and no function is longer than a person can hold in mind.

use anyhow::Result;
use proc_macro2::Span;
use syn::{
    Attribute, Block, ImplItemFn, ItemFn, ItemMod, TraitItemFn,
    visit::{self, Visit},
};

use super::{Offence, Source, apply, check_planted};

/// The longest file, in lines.
const FILE_LINES_MAX: usize = 500;

/// The longest function, in lines of its body that hold code, as clippy counts them.
const FUNCTION_LINES_MAX: usize = 70;

/// Files that may be longer, each with the reason.
const LONGER_FILES: &[(&str, &str)] = &[];

/// Whether these attributes put an item into test builds only.
pub(super) fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute.parse_args::<syn::Path>().is_ok_and(|condition| condition.is_ident("test"))
    })
}

/// Whether a file is of a test program: what is said about code is not said about tests.
pub(super) fn is_test_program(source: &Source) -> bool {
    source.path.contains("/tests/") && !source.path.contains("/src/")
}

/// Parses a file of Rust, or says where it cannot be parsed.
pub(super) fn parse(source: &Source) -> Result<syn::File, Vec<Offence>> {
    syn::parse_file(&source.text)
        .map_err(|error| vec![source.offence(error.span().start().line, format!("no valid Rust: {error}"))])
}

fn long_files(source: &Source) -> Vec<Offence> {
    let lines = source.text.lines().count();
    let allowed = LONGER_FILES.iter().any(|(path, _)| *path == source.path);
    if lines <= FILE_LINES_MAX || allowed {
        return Vec::new();
    }
    vec![
        source.offence(FILE_LINES_MAX, format!("{lines} lines: split it by nouns, at most {FILE_LINES_MAX}")),
    ]
}

struct Functions<'a> {
    source: &'a Source,
    offences: Vec<Offence>,
}

impl Functions<'_> {
    fn measure(&mut self, name: &syn::Ident, block: &Block) {
        let (open, close): (Span, Span) = (block.brace_token.span.open(), block.brace_token.span.close());
        let body = self.source.text.lines().skip(open.start().line);
        let lines = body
            .take(close.start().line.saturating_sub(open.start().line + 1))
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with("//"))
            .count();
        if lines > FUNCTION_LINES_MAX {
            let mend =
                format!("{name} has {lines} lines of code: name its steps, at most {FUNCTION_LINES_MAX}");
            self.offences.push(self.source.offence(name.span().start().line, mend));
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_test_only(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        if !is_test_only(&item.attrs) {
            self.measure(&item.sig.ident, &item.block);
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.measure(&item.sig.ident, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        if let Some(block) = &item.default {
            self.measure(&item.sig.ident, block);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

fn long_functions(source: &Source) -> Vec<Offence> {
    let file = match parse(source) {
        Ok(file) => file,
        Err(offences) => return offences,
    };
    let mut functions = Functions { source, offences: Vec::new() };
    functions.visit_file(&file);
    functions.offences
}

#[test]
fn files_have_at_most_500_lines() -> Result<()> {
    apply(Source::is_rust, long_files)
}

#[test]
fn functions_have_at_most_70_lines() -> Result<()> {
    apply(|source| source.is_rust() && !is_test_program(source), long_functions)
}

#[test]
fn a_long_file_is_caught() {
    check_planted(long_files, "a.rs", &"\n".repeat(FILE_LINES_MAX), &[]);
    check_planted(long_files, "a.rs", &"\n".repeat(FILE_LINES_MAX + 1), &[FILE_LINES_MAX]);
}

#[test]
fn a_long_function_is_caught() {
    let lines = |count: usize| "    f();\n    // A remark.\n\n".repeat(count);
    let free = |count: usize| format!("fn f() {{\n{}}}\n", lines(count));
    check_planted(long_functions, "a.rs", &free(FUNCTION_LINES_MAX), &[]);
    check_planted(long_functions, "a.rs", &free(FUNCTION_LINES_MAX + 1), &[1]);
    check_planted(long_functions, "a.rs", &format!("impl A {{\n{}}}", free(FUNCTION_LINES_MAX + 1)), &[2]);
    check_planted(long_functions, "a.rs", &format!("trait A {{\n{}}}", free(FUNCTION_LINES_MAX + 1)), &[2]);
    let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}", free(FUNCTION_LINES_MAX + 1));
    check_planted(long_functions, "a.rs", &tests, &[]);
    check_planted(long_functions, "a.rs", "fn f( {", &[1]);
}

#[test]
fn test_programs_are_told_from_code() {
    let check =
        |path: &str, expect: bool| assert_eq!(is_test_program(&Source::new(path, "")), expect, "{path}");
    check("tests/tests/all.rs", true);
    check("tests/tests/tidy/mod.rs", true);
    check("storage-sqlx/tests/conformance.rs", true);
    check("tests/src/replay/mod.rs", false);
    check("transcript-core/src/lib.rs", false);
}
