//! Arguments of `verbatim get`.

use std::{path::PathBuf, time::Duration};

use clap::Args;

use super::arguments::OutputFormat;

#[derive(Args, Debug)]
#[command(
    override_usage = "verbatim get [OPTIONS] LINK...
       verbatim get [OPTIONS] --from FILE",
    after_help = "Examples, one video:
  verbatim get https://www.youtube.com/watch?v=dQw4w9WgXcQ
  verbatim get dQw4w9WgXcQ --lang de --format json | jq .transcript
  verbatim get dQw4w9WgXcQ --format srt > talk.srt
  verbatim get dQw4w9WgXcQ --format md --frontmatter > talk.md

Examples, many videos:
  verbatim get https://www.youtube.com/playlist?list=PL0123456789abcdef --to course
  verbatim get @name @name/streams --since 2026-01-01 --to notes --format md
  verbatim get --search 'tide mills' --limit 20 --to mills
  verbatim get --from links.txt --to subtitles --format srt --name '{channel}/{date} {title} [{id}]'
  grep -o 'https://youtu[^ ]*' notes.md | verbatim get --from - --format json | jq -r .videoId

A link to a video in a playlist means the video. Without --to, transcripts of several videos are printed in \
order: one line of JSON for each link, or texts below a line '==> TITLE (LINK) <=='. --from ignores empty \
lines and those that begin with #.
With --to, each transcript is a file, whose path is printed. It appears under its name once it is complete. \
Ctrl-C stops; the same command continues: files that exist are skipped, and nothing is fetched twice, \
because the archive has it. Placeholders of --name: {id}, {title}, {channel}, {date}, {language}, {index} \
(position in its list), {platform}; a / makes a folder. Without {id}, a name that another video has gets the \
id appended.
`verbatim import DIR` reads JSON with the default name, and SRT and WebVTT of YouTube.

Exit status 0: all transcripts; 3: none; 4: some; 130: stopped by Ctrl-C. Standard error has a line for each \
failure, with its reason, and a summary. For one link without --to, the last line is the watch address."
)]
pub(super) struct GetArgs {
    /// Links to videos, playlists, channels and profiles; also ids and handles (after -- if a second one begins with -)
    #[arg(value_name = "LINK", allow_hyphen_values = true, required_unless_present_any = ["from", "search"])]
    pub(super) link: Option<String>,
    /// Further links. In a single list, the options behind a link would be links too.
    #[arg(value_name = "LINK", hide = true)]
    pub(super) more_links: Vec<String>,
    /// File with a link on each line; - reads standard input
    #[arg(long, value_name = "FILE")]
    pub(super) from: Option<PathBuf>,
    /// Get the videos that YouTube finds for these words; needs --limit
    #[arg(long, value_name = "WORDS", requires = "limit")]
    pub(super) search: Option<String>,
    /// Write files into this folder; it is created if necessary
    #[arg(long, value_name = "DIR")]
    pub(super) to: Option<PathBuf>,
    /// Names of the files, without extension
    #[arg(long, value_name = "TEMPLATE", requires = "to", default_value = "{title} [{id}].{language}")]
    pub(super) name: String,
    /// Most videos of each list
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) limit: Option<u64>,
    /// Skip what a list shows as older: a date such as 2026-01-31, or an age such as 30d
    #[arg(long, value_name = "TIME")]
    pub(super) since: Option<String>,
    /// Language, such as en, pt-BR or zh-Hant [default: English, otherwise the spoken language]
    #[arg(long, value_name = "TAG")]
    pub(super) lang: Option<String>,
    /// Accept a machine translation into the language if there is no other transcript in it
    #[arg(long, requires = "lang")]
    pub(super) translated: bool,
    /// Add the times of words, if known: to JSON and WebVTT
    #[arg(long)]
    pub(super) words: bool,
    /// Begin Markdown, text or WebVTT with title, channel, link and date
    #[arg(long)]
    pub(super) frontmatter: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(super) format: OutputFormat,
    /// Longest wait for a platform that throttles or blocks, such as 5m [default: none for one link, otherwise 5m]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(super) max_wait: Option<Duration>,
}

impl GetArgs {
    /// The links of the command line.
    pub(super) fn links(&self) -> impl Iterator<Item = &String> {
        self.link.iter().chain(&self.more_links)
    }
}
