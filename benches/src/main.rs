//! What Verbatim costs, always beside a baseline that runs in the same minutes; see README.md.
#![expect(clippy::print_stdout, reason = "the figures are what this program is for")]

mod archive;
mod ask;
mod bare;
mod budgets;
mod charged;
mod chat;
mod commits;
mod corpus;
mod dictionary;
mod fetch;
mod least;
mod library;
mod lookup;
mod pages;
mod plain;
mod platform;
mod postgres;
mod posts;
mod process;
mod report;
mod social;
mod sound;
mod talk;

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;

/// The server's: what is measured in this process costs what it costs there.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures, and prints medians of interleaved rounds.
#[derive(Debug, Parser)]
#[command(name = "verbatim-benches")]
enum Topic {
    /// Look-ups of archived transcripts over HTTP, beside a bare hyper server.
    Lookup,
    /// The watch page of an archived hour, beside the look-up of the same in JSON.
    Pages,
    /// Fetches of new transcripts, beside youtube-transcript-api.
    Fetch,
    /// Look-ups of TikTok, X and Instagram, beside yt-dlp.
    Social,
    /// An hour of sound through speech-to-text: memory and time.
    Sound,
    /// Archived transcripts for credits, beside what the disk can keep.
    Charged,
    /// The same charges in the store alone, beside what the disk can keep.
    Commits,
    /// Charges on PostgreSQL, beside pgbench.
    Postgres,
    /// Questions about videos: passages, and answers beside transcripts.
    Chat,
    /// Start, memory, links, captions.
    Budgets,
    /// Archives of a thousand to a million transcripts: look-ups beside each other, and the room that they take.
    Archive {
        /// The folder of the archives, which stay there for the next time; one that goes at the end by default.
        #[arg(long)]
        data: Option<PathBuf>,
        /// Only fill the archives.
        #[arg(long)]
        fill: bool,
    },
    /// All of them.
    All,
    /// Trains the dictionary of the compact form.
    Dictionary {
        /// The file that is written.
        file: PathBuf,
    },
    /// Fills an archive, for who looks at a server of their own.
    #[command(hide = true)]
    Fill {
        /// The data folder.
        data: PathBuf,
        /// How many transcripts.
        videos: u64,
    },
    /// The bare server that the others start.
    #[command(hide = true)]
    Bare {
        /// The file that has its answer.
        answer: PathBuf,
    },
    /// reqwest alone, which the benchmark of the Python package starts.
    #[command(hide = true)]
    Least {
        /// The proxy through which it asks.
        proxy: String,
        /// The certificate that it trusts.
        ca_file: PathBuf,
    },
    /// The library alone, which `fetch` starts.
    #[command(hide = true)]
    Library {
        /// The proxy through which it asks.
        proxy: String,
        /// The certificate that it trusts.
        ca_file: PathBuf,
        /// What the names of the videos begin with.
        prefix: String,
        /// How many it fetches at once.
        at_once: usize,
    },
    /// The library alone, which `social` starts.
    #[command(hide = true)]
    Posts {
        /// The proxy through which it asks.
        proxy: String,
        /// The certificate that it trusts.
        ca_file: PathBuf,
        /// What the posts' addresses begin with.
        prefix: String,
        /// The number of the first post.
        first: u64,
    },
}

#[tokio::main]
async fn main() -> Result<()> {
    match Topic::parse() {
        Topic::Lookup => lookup::run().await,
        Topic::Pages => pages::run().await,
        Topic::Fetch => fetch::run().await,
        Topic::Social => social::run(),
        Topic::Sound => sound::run().await,
        Topic::Charged => charged::run().await,
        Topic::Commits => commits::run().await,
        Topic::Postgres => postgres::run().await,
        Topic::Chat => chat::run().await,
        Topic::Budgets => budgets::run().await,
        Topic::All => {
            lookup::run().await?;
            pages::run().await?;
            fetch::run().await?;
            social::run()?;
            sound::run().await?;
            charged::run().await?;
            commits::run().await?;
            postgres::run().await?;
            chat::run().await?;
            archive::run(None, false).await?;
            budgets::run().await
        }
        Topic::Archive { data, fill } => archive::run(data.as_deref(), fill).await,
        Topic::Dictionary { file } => dictionary::train(&file),
        Topic::Fill { data, videos } => lookup::fill(&data, videos).await,
        Topic::Bare { answer } => bare::serve(&answer).await,
        Topic::Least { proxy, ca_file } => least::serve(&proxy, &ca_file).await,
        Topic::Library { proxy, ca_file, prefix, at_once } => {
            library::serve(proxy, ca_file, prefix, at_once).await
        }
        Topic::Posts { proxy, ca_file, prefix, first } => {
            library::serve_posts(proxy, ca_file, prefix, first).await
        }
    }
}
