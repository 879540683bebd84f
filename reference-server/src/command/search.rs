//! `verbatim search`: searches the archive, and maintains the index of the search.

use std::{
    ffi::{OsStr, OsString},
    io::IsTerminal,
};

use clap::{Args, Subcommand, ValueEnum};
use transcript_core::{
    lookup::LookupOptions,
    search::{QUERY_CHARS_MAX, SearchMoment, SearchPage, SearchParams, SearchSort},
    transcript::{LanguageTag, format_timestamp},
    video::VideoLink,
    wire::search::SearchResponse,
};
use verbatim::Verbatim;

use super::{
    CommandError, arguments::CommonArgs, ignore_closed, open_existing_archive, print, print_json,
    print_stderr, progress::ProgressLine, shown, video_name,
};
use crate::config::Settings;

/// Videos of a page, if the arguments do not say how many.
const LIMIT: u32 = 20;
/// Longest line of a title or a moment on a terminal, in characters.
const LINE_MAX: usize = 400;
/// Mark of a match on a terminal, at both ends.
const MATCH_MARK: char = '*';

#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  verbatim search tide tables
  verbatim search '\"tide tables\" -moon lang:en after:2024'
  verbatim search harbour --format json --limit 5 | jq '.hits[].watchUrl'
  verbatim search rebuild
  verbatim search -- rebuild

All words must occur, in any order and form. \"exact phrase\", -not, OR, prefix*, lang:, platform:, \
channel:, before: and after: narrow the search. Exit status 3: nothing was found."
)]
pub(super) struct SearchArgs {
    #[command(subcommand)]
    action: Option<SearchAction>,
    /// Words to search for
    #[arg(value_name = "WORDS")]
    words: Vec<String>,
    /// Only transcripts in this language, such as en, pt-BR or zh-Hant
    #[arg(long, value_name = "TAG")]
    lang: Option<String>,
    /// Most videos to print, from 1 to 100
    #[arg(
        long,
        value_name = "N",
        default_value_t = LIMIT,
        value_parser = clap::value_parser!(u32).range(1..=100)
    )]
    limit: u32,
    /// Order of the videos
    #[arg(long, value_enum, default_value_t = SortOrder::Relevance)]
    sort: SortOrder,
    /// Continue after the previous page, with its cursor
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = SearchFormat::Text)]
    format: SearchFormat,
}

#[derive(Debug, Subcommand)]
enum SearchAction {
    /// Build the index of the search again; searches go on. An interrupted build is continued
    Rebuild,
    /// Compare the index of the search with the archive; exit status 1 if they differ
    Check,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SortOrder {
    /// Best first
    Relevance,
    /// Newest video first
    Date,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SearchFormat {
    /// For people
    Text,
    /// As the API returns it
    Json,
}

impl SearchArgs {
    /// The words as one query.
    fn query(&self) -> String {
        // Of the space that marks an excluded word, nothing remains.
        self.words.iter().map(|word| word.trim_start()).collect::<Vec<_>>().join(" ")
    }
}

/// Puts a space before each word that a search excludes, such as `-moon`: clap would take it for options.
///
/// Clap's own setting for such words would take the options behind the first word for words.
pub(super) fn with_excluded_words(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    // The name of the command follows the name of the program and the options of every command.
    let mut position = 1;
    while let Some(option) = arguments.get(position)
        && option.as_encoded_bytes().starts_with(b"--")
    {
        position += if option == "--data" || option == "--config" { 2 } else { 1 };
    }
    if arguments.get(position).is_some_and(|command| command == "search") {
        for argument in arguments.iter_mut().skip(position + 1) {
            if is_excluded_word(argument) {
                let mut word = OsString::from(" ");
                word.push(&*argument);
                *argument = word;
            }
        }
    }
    arguments
}

fn is_excluded_word(argument: &OsStr) -> bool {
    let has_one_hyphen = matches!(argument.as_encoded_bytes(), [b'-', next, ..] if *next != b'-');
    has_one_hyphen && argument != "-h"
}

pub(super) async fn run(
    settings: &Settings,
    common: &CommonArgs,
    args: &SearchArgs,
) -> Result<(), CommandError> {
    let verbatim = open_existing_archive(settings).await?;
    let ended = match args.action {
        Some(SearchAction::Rebuild) => rebuild(&verbatim).await,
        Some(SearchAction::Check) => check(&verbatim).await,
        None => search(settings, common, &verbatim, args).await,
    };
    verbatim.close().await;
    ended
}

async fn search(
    settings: &Settings,
    common: &CommonArgs,
    verbatim: &Verbatim,
    args: &SearchArgs,
) -> Result<(), CommandError> {
    let query = args.query();
    if query.trim().is_empty() {
        return Err(CommandError::Wrong("give the words to search for: verbatim search WORDS".to_owned()));
    }
    if query.chars().count() > QUERY_CHARS_MAX {
        return Err(CommandError::Wrong(format!("the words have more than {QUERY_CHARS_MAX} characters")));
    }
    let language = args.lang.as_deref().map(LanguageTag::parse).transpose();
    let language = language.map_err(|error| CommandError::Wrong(format!("--lang: {error}")))?;
    let sort = match args.sort {
        SortOrder::Relevance => SearchSort::Relevance,
        SortOrder::Date => SearchSort::Date,
    };
    let (limit, cursor) = (args.limit, args.cursor.clone());
    catch_up(verbatim).await?;
    let params = SearchParams {
        query,
        language,
        sort,
        limit,
        cursor,
        with_segments: false,
        with_unfiltered: true,
        ..SearchParams::default()
    };
    let page = verbatim.search().search(&params).await?;
    let base_url = settings.server.base_url_at(settings.server.listen.socket_address());
    let links = LookupOptions { base_url, ..LookupOptions::default() };
    if args.format == SearchFormat::Json {
        let body = SearchResponse::new(&params.query, &page, |hit| {
            links.watch_url(&VideoLink::Video(hit.stored.transcript.video.clone()), None)
        });
        let json = serde_json::to_string_pretty(&body)
            .map_err(|error| CommandError::Fault(format!("cannot write JSON: {error}")))?;
        print_json(&format!("{json}\n"))?;
    } else if !page.hits.is_empty() {
        print_page(&page)?;
    }
    if let Some(cursor) = page.next.as_ref().filter(|_| args.format != SearchFormat::Json) {
        print_stderr(&format!("more: {}", next_command(common, args, cursor)));
    }
    if page.hits.is_empty() {
        return Err(CommandError::Missing("nothing was found".to_owned(), hint(&page)));
    }
    Ok(())
}

/// What to search instead, if nothing was found.
fn hint(page: &SearchPage) -> String {
    let suggestion = page.suggestion.as_deref();
    let suggestion = suggestion.map(|words| format!("Did you mean: {}", shown(words, LINE_MAX)));
    let unfiltered = page.without_filters.as_ref().map(|found| {
        let words = shown(&found.query, LINE_MAX);
        format!("Without the filters, {words} has {}", found.total)
    });
    suggestion.into_iter().chain(unfiltered).collect::<Vec<_>>().join("\n")
}

/// The command that prints the next page, for a shell: with the options that were given.
fn next_command(common: &CommonArgs, args: &SearchArgs, cursor: &str) -> String {
    let options = [
        ("--data", common.data.as_ref().map(|folder| folder.display().to_string())),
        ("--config", common.config.as_ref().map(|file| file.display().to_string())),
        ("--lang", args.lang.clone()),
        ("--limit", (args.limit != LIMIT).then(|| args.limit.to_string())),
        ("--sort", matches!(args.sort, SortOrder::Date).then(|| "date".to_owned())),
        ("--cursor", Some(cursor.to_owned())),
    ];
    let mut command = "verbatim search".to_owned();
    for (name, value) in options {
        if let Some(value) = value {
            command.push_str(&format!(" {name} {}", shell_word(&value)));
        }
    }
    // Unchanged: the cursor belongs to exactly this query.
    let query = args.query();
    let end_of_options = if query.starts_with('-') { "-- " } else { "" };
    format!("{command} {end_of_options}{}", shell_word(&query))
}

/// A text as one word of a shell, in single quotes if necessary.
pub(super) fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// Indexes what changed, with progress: the first search of a large archive takes a while.
async fn catch_up(verbatim: &Verbatim) -> Result<(), CommandError> {
    let total = verbatim.tools().stats().await?.transcripts;
    let mut progress: Option<ProgressLine> = None;
    loop {
        let step = verbatim.search().step().await?;
        if step.is_idle() {
            return Ok(());
        }
        if step.built > 0 {
            let line = progress.get_or_insert_with(|| ProgressLine::new("indexed", Some(total)));
            line.reach(step.state.tracks, "the index of the search is built");
        }
    }
}

async fn rebuild(verbatim: &Verbatim) -> Result<(), CommandError> {
    let total = verbatim.tools().stats().await?.transcripts;
    let mut progress = ProgressLine::new("indexed", Some(total));
    let state = verbatim
        .search()
        .rebuild(|step| progress.reach(step.state.tracks, "the index of the search is built"))
        .await?;
    drop(progress);
    print(&format!("Built the index of {} transcripts.\n", state.tracks))
}

async fn check(verbatim: &Verbatim) -> Result<(), CommandError> {
    let total = verbatim.tools().stats().await?.transcripts;
    let mut progress = ProgressLine::new("compared", Some(total));
    let checked = verbatim.search().check(|compared| progress.reach(compared, "with the index")).await?;
    drop(progress);
    for difference in &checked.differences {
        let text = format!("{} ({}): {}\n", difference.video, difference.language, difference.problem);
        ignore_closed(print(&text))?;
    }
    let state = if checked.is_complete { "" } else { " The index is not complete yet." };
    let text =
        format!("Transcripts compared: {}. Differences: {}.{state}\n", checked.compared, checked.total);
    ignore_closed(print(&text))?;
    match checked.total {
        0 => Ok(()),
        _ => Err(CommandError::Fault(
            "the index of the search differs from the archive: verbatim search rebuild".to_owned(),
        )),
    }
}

fn print_page(page: &SearchPage) -> Result<(), CommandError> {
    let is_terminal = std::io::stdout().is_terminal();
    let mut text = format!("{}\n", page.total);
    for hit in &page.hits {
        let transcript = &hit.stored.transcript;
        let name = transcript.title.clone().unwrap_or_else(|| video_name(&transcript.video));
        let author = transcript.author.as_deref().map(|author| format!(" · {}", shown(author, LINE_MAX)));
        text.push_str(&format!(
            "\n{}{} · {}\n",
            shown(&name, LINE_MAX),
            author.unwrap_or_default(),
            transcript.track.language
        ));
        for moment in &hit.moments {
            let seconds = moment.start_ms / 1_000;
            text.push_str(&format!(
                "  {:>8}  {}\n            {}\n",
                format_timestamp(seconds),
                marked(moment, is_terminal),
                transcript.video.address_at(seconds)
            ));
        }
        if hit.moments.is_empty() {
            text.push_str(&format!("            {}\n", transcript.video.address_at(0)));
        }
    }
    print(&text)
}

/// The text of a moment, on a terminal with its matches between asterisks.
fn marked(moment: &SearchMoment, is_terminal: bool) -> String {
    if !is_terminal {
        return moment.text.clone();
    }
    let mut text = String::new();
    for (letter, position) in moment.text.chars().zip(0_u32..) {
        if moment.matches.iter().any(|(start, _)| *start == position) {
            text.push(MATCH_MARK);
        }
        text.push(letter);
        if moment.matches.iter().any(|(_, end)| *end == position + 1) {
            text.push(MATCH_MARK);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::{Parser, error::ErrorKind};

    use super::{
        super::arguments::{Command, CommandArgs},
        *,
    };

    fn parse(line: &str) -> Result<(CommonArgs, SearchArgs), clap::Error> {
        let arguments = with_excluded_words(line.split(' ').map(OsString::from));
        let CommandArgs { common, command } = CommandArgs::try_parse_from(arguments)?;
        let Command::Search(args) = command else { panic!("{command:?}") };
        Ok((common, args))
    }

    #[test]
    fn excluded_words_and_options_mix() {
        for (line, query, limit) in [
            ("verbatim search tide -moon", "tide -moon", LIMIT),
            ("verbatim search tide -moon --limit 3 --data d", "tide -moon", 3),
            ("verbatim --data d --config=c search -moon --limit 3 tide -h1", "-moon tide -h1", 3),
            ("verbatim search --limit 3 -moon -sun", "-moon -sun", 3),
            ("verbatim search -- rebuild -moon --limit", "rebuild -moon --limit", LIMIT),
        ] {
            let (_, args) = parse(line).unwrap();
            assert_eq!((args.query().as_str(), args.limit), (query, limit), "{line}");
        }
        for (line, expect) in [
            ("verbatim search tide -h", ErrorKind::DisplayHelp),
            ("verbatim search tide --moon", ErrorKind::UnknownArgument),
            ("verbatim archive stats -moon", ErrorKind::UnknownArgument),
        ] {
            assert_eq!(parse(line).unwrap_err().kind(), expect, "{line}");
        }
        assert!(matches!(parse("verbatim search check").unwrap().1.action, Some(SearchAction::Check)));
    }

    #[test]
    fn next_command_repeats_options_and_quotes_words() {
        for (line, query, expect) in [
            ("verbatim search --sort date --limit 3 sea", None, "--limit 3 --sort date --cursor c1 sea"),
            ("verbatim search x --data /d --lang hi", Some("सागर"), "--data /d --lang hi --cursor c1 'सागर'"),
            ("verbatim search x --config=c", Some("the OR $HOME"), "--config c --cursor c1 'the OR $HOME'"),
            ("verbatim search x", Some("\"it's\" so"), r#"--cursor c1 '"it'\''s" so'"#),
            ("verbatim search -moon tide", None, "--cursor c1 -- '-moon tide'"),
        ] {
            let (common, mut args) = parse(line).unwrap();
            if let Some(query) = query {
                args.words = vec![query.to_owned()];
            }
            let expect = format!("verbatim search {expect}");
            assert_eq!(next_command(&common, &args, "c1"), expect);
        }
    }
}
