//! `verbatim completions` and `verbatim man-pages`: both are written from the definition of the command line.

use std::{
    io,
    path::{Path, PathBuf},
};

use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::Shell;
use clap_mangen::Man;

use super::{CommandError, arguments::CommandArgs, print};

/// Date of the manual pages. `release.sh` writes it, so every build of a release has the same pages.
const RELEASE_DATE: &str = "2026-11-28";

/// Arguments of `verbatim completions`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim completions bash > ~/.local/share/bash-completion/completions/verbatim
  verbatim completions zsh > \"${fpath[1]}/_verbatim\"
  verbatim completions fish > ~/.config/fish/completions/verbatim.fish

A new shell reads the file.")]
pub(super) struct CompletionsArgs {
    /// Shell that reads the completions
    #[arg(value_enum)]
    shell: Shell,
}

/// Arguments of `verbatim man-pages`.
#[derive(Args, Debug)]
#[command(after_help = "Example:
  verbatim man-pages ~/.local/share/man/man1 && man verbatim-get")]
pub(super) struct ManPagesArgs {
    /// Folder for the pages; it is created, and files of the same names are replaced
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Prints the completions of one shell.
pub(super) fn print_completions(args: &CompletionsArgs) -> Result<(), CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut CommandArgs::command(), "verbatim", &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    if args.shell == Shell::Fish {
        // clap_complete writes the options of a command for fish, and leaves its arguments to files.
        let shells: Vec<String> = Shell::value_variants().iter().map(ToString::to_string).collect();
        script.push_str("complete -c verbatim -n \"__fish_verbatim_using_subcommand completions\" -f -a \"");
        script.push_str(&shells.join(" "));
        script.push_str("\"\n");
    }
    print(&script)
}

/// Writes one manual page for the program, and one for each command.
pub(super) fn write_man_pages(args: &ManPagesArgs) -> Result<(), CommandError> {
    let folder = args.folder.display();
    let failed = |error| CommandError::Fault(format!("manual pages cannot be written to {folder}: {error}"));
    std::fs::create_dir_all(&args.folder).map_err(failed)?;
    let mut command = CommandArgs::command().disable_help_subcommand(true);
    command.build();
    write_pages(command, &args.folder).map_err(failed)
}

/// Writes the pages of a command and of those below it.
fn write_pages(command: clap::Command, folder: &Path) -> io::Result<()> {
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        write_pages(subcommand.clone(), folder)?;
    }
    let man = Man::new(command)
        .date(RELEASE_DATE)
        .source(concat!("verbatim ", env!("CARGO_PKG_VERSION")))
        .manual("Verbatim");
    let mut page = Vec::new();
    man.render(&mut page)?;
    std::fs::write(folder.join(man.get_filename()), with_examples(&String::from_utf8_lossy(&page)))
}

/// The page with a heading for the text after its options, which `clap_mangen` heads "EXTRA".
///
/// The lines of examples stay as they are: filled, they would be broken and hyphenated.
fn with_examples(page: &str) -> String {
    let Some((page, rest)) = page.split_once(".SH EXTRA\n") else {
        return page.to_owned();
    };
    let heading = if rest.starts_with("Example") { "EXAMPLES" } else { "NOTES" };
    let rest =
        ["Examples:\n", "Example:\n"].iter().find_map(|title| rest.strip_prefix(title)).unwrap_or(rest);
    let mut text = format!("{page}.SH {heading}\n");
    let mut was_example = false;
    for line in rest.lines() {
        let is_example = line.starts_with("  ");
        if is_example != was_example {
            text.push_str(if is_example { ".nf\n" } else { ".fi\n" });
        }
        was_example = is_example;
        text.push_str(line);
        text.push('\n');
    }
    if was_example {
        text.push_str(".fi\n");
    }
    text
}
