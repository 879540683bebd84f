//! `verbatim completions` and `verbatim man-pages`: both are written from the definition of the command line.

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{CommandError, arguments::CommandArgs, print};

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
    print(&String::from_utf8_lossy(&script))
}

/// Writes one manual page for the program, and one for each command.
pub(super) fn write_man_pages(args: &ManPagesArgs) -> Result<(), CommandError> {
    let folder = args.folder.display();
    let failed = |error| CommandError::Fault(format!("manual pages cannot be written to {folder}: {error}"));
    std::fs::create_dir_all(&args.folder).map_err(failed)?;
    clap_mangen::generate_to(CommandArgs::command().disable_help_subcommand(true), &args.folder)
        .map_err(failed)
}
