//! Maximum lengths of files and functions.

use anyhow::Result;
use proc_macro2::Span;
use syn::{
    Attribute, Block, ImplItemFn, Item, ItemFn, ItemMod, Meta, Token, TraitItemFn,
    punctuated::Punctuated,
    visit::{self, Visit},
};

use super::{SourceFile, Violation, apply, check_planted};

/// The longest file, in lines.
const FILE_LINES_MAX: usize = 500;

/// The longest function, in lines of its body that contain code, as clippy counts them.
const FUNCTION_LINES_MAX: usize = 70;

/// Files that may be longer, each with the reason.
const LONGER_FILES: &[(&str, &str)] = &[];

/// Whether these attributes put an item into test builds only.
pub(super) fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute.parse_args::<Meta>().is_ok_and(|cfg| requires_test(&cfg))
    })
}

/// The attributes of an item, if items of its kind may be for test builds only.
pub(super) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Fn(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        _ => &[],
    }
}

/// Whether a condition is `test`, or `all(…)` with it.
fn requires_test(condition: &Meta) -> bool {
    match condition {
        Meta::Path(name) => name.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => list
            .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
            .is_ok_and(|all| all.iter().any(requires_test)),
        _ => false,
    }
}

/// Whether a file belongs to a test program, to which the rules about code do not apply.
pub(super) fn is_test_program(source: &SourceFile) -> bool {
    source.path.contains("/tests/") && !source.path.contains("/src/")
}

/// Parses a Rust file.
///
/// # Errors
///
/// A violation at the line of the syntax error.
pub(super) fn parse(source: &SourceFile) -> Result<syn::File, Vec<Violation>> {
    syn::parse_file(&source.text)
        .map_err(|error| vec![source.violation(error.span().start().line, format!("no valid Rust: {error}"))])
}

fn long_files(source: &SourceFile) -> Vec<Violation> {
    let lines = source.text.lines().count();
    let allowed = LONGER_FILES.iter().any(|(path, _)| *path == source.path);
    if lines <= FILE_LINES_MAX || allowed {
        return Vec::new();
    }
    vec![
        source
            .violation(FILE_LINES_MAX, format!("{lines} lines: split it by nouns, at most {FILE_LINES_MAX}")),
    ]
}

struct FunctionVisitor<'a> {
    source: &'a SourceFile,
    violations: Vec<Violation>,
}

impl FunctionVisitor<'_> {
    fn measure(&mut self, name: &syn::Ident, block: &Block) {
        let (open, close): (Span, Span) = (block.brace_token.span.open(), block.brace_token.span.close());
        let body = self.source.text.lines().skip(open.start().line);
        let lines = body
            .take(close.start().line.saturating_sub(open.start().line + 1))
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with("//"))
            .count();
        if lines > FUNCTION_LINES_MAX {
            let advice =
                format!("{name} has {lines} lines of code: name its steps, at most {FUNCTION_LINES_MAX}");
            self.violations.push(self.source.violation(name.span().start().line, advice));
        }
    }
}

impl<'ast> Visit<'ast> for FunctionVisitor<'_> {
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

fn long_functions(source: &SourceFile) -> Vec<Violation> {
    let file = match parse(source) {
        Ok(file) => file,
        Err(violations) => return violations,
    };
    let mut functions = FunctionVisitor { source, violations: Vec::new() };
    functions.visit_file(&file);
    functions.violations
}

#[test]
fn tidy_files_have_at_most_500_lines() -> Result<()> {
    apply(SourceFile::is_rust, long_files)
}

#[test]
fn tidy_functions_have_at_most_70_lines() -> Result<()> {
    apply(|source| source.is_rust() && !is_test_program(source), long_functions)
}

#[test]
fn tidy_long_file_is_reported() {
    check_planted(long_files, "a.rs", &"\n".repeat(FILE_LINES_MAX), &[]);
    check_planted(long_files, "a.rs", &"\n".repeat(FILE_LINES_MAX + 1), &[FILE_LINES_MAX]);
}

#[test]
fn tidy_long_function_is_reported() {
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
fn tidy_test_programs_are_recognized() {
    let check =
        |path: &str, expect: bool| assert_eq!(is_test_program(&SourceFile::new(path, "")), expect, "{path}");
    check("tests/tests/all.rs", true);
    check("tests/tests/tidy/mod.rs", true);
    check("storage-sqlx/tests/conformance.rs", true);
    check("tests/src/replay/mod.rs", false);
    check("transcript-core/src/lib.rs", false);
}
