//! Costs of Verbatim, each compared with a baseline that runs at the same time; see README.md.
#![expect(clippy::print_stdout, reason = "this program prints figures")]

mod archive;
mod baseline_hyper;
mod baseline_reqwest;
mod baseline_rusqlite;
mod budgets;
mod chat;
mod commits;
mod corpus;
mod dictionary;
mod fetch;
mod http_client;
mod jobs;
mod library;
mod lookup;
mod many;
mod markov_text;
mod overload;
mod pages;
mod platform;
mod postgres;
mod posts;
mod process;
mod report;
mod search;
mod soak;
mod social;
mod sound;
mod v1_transcripts;

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;

/// The server's allocator, so that measurements in this process match the server's costs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measure costs and print medians of interleaved rounds.
#[derive(Debug, Parser)]
#[command(name = "verbatim-benches")]
enum BenchTopic {
    /// Measure lookups of archived transcripts over HTTP, compared with a bare hyper server.
    Lookup,
    /// Measure the watch page of an archived hour, compared with the same lookup in JSON.
    Pages,
    /// Measure fetches of new transcripts, compared with youtube-transcript-api.
    Fetch,
    /// Measure `verbatim get` of a thousand videos, compared with the time that its concurrency permits.
    Many,
    /// Measure jobs of the server: an item, compared with a lookup of a new video, and a thousand videos.
    Jobs,
    /// Measure lookups of TikTok, X and Instagram, compared with yt-dlp.
    Social,
    /// Measure memory and time of an hour of audio through speech-to-text.
    Sound,
    /// Measure archived transcripts for credits, compared with the disk's sync rate.
    Charged,
    /// Measure the same charges in the store alone, compared with the disk's sync rate.
    Commits,
    /// Measure charges on PostgreSQL, compared with pgbench.
    Postgres,
    /// Measure questions about videos: passages, and answers compared with transcripts.
    Chat,
    /// Measure search in the whole archive, compared with tantivy and SQLite's FTS5 on the same talks.
    Search {
        /// Number of talks of half a minute.
        #[arg(long, default_value_t = search::TALKS)]
        talks: u64,
    },
    /// Measure start, memory, links and captions.
    Budgets,
    /// Measure archives of a thousand to a million transcripts: lookups and disk space.
    Archive {
        /// Folder of the archives, which are kept for the next run; a temporary folder by default.
        #[arg(long)]
        data: Option<PathBuf>,
        /// Fill the archives and stop.
        #[arg(long)]
        fill: bool,
    },
    /// Measure hours of mixed load with faults: memory, descriptors and latency.
    Soak {
        /// Duration in minutes.
        #[arg(long, default_value_t = 120)]
        minutes: u64,
    },
    /// Measure load far beyond capacity, compared with the peak.
    Overload,
    /// Run all measurements, except the soak.
    All,
    /// Train the dictionary of the compact form.
    Dictionary {
        /// File to write.
        file: PathBuf,
    },
    /// Fill an archive, to measure another server with.
    #[command(hide = true)]
    Fill {
        /// Data folder.
        data: PathBuf,
        /// Number of transcripts.
        videos: u64,
    },
    /// Run the bare server that other topics start.
    #[command(hide = true)]
    Bare {
        /// File with its response.
        response: PathBuf,
    },
    /// Run reqwest alone, for the benchmark of the Python package.
    #[command(hide = true)]
    Least {
        /// Proxy of its requests.
        proxy: String,
        /// Certificate that it trusts.
        ca_file: PathBuf,
    },
    /// Run the library alone, for `fetch`.
    #[command(hide = true)]
    Library {
        /// Proxy of its requests.
        proxy: String,
        /// Certificate that it trusts.
        ca_file: PathBuf,
        /// Prefix of the video ids.
        prefix: String,
        /// Concurrent fetches.
        concurrency: usize,
    },
    /// Run the library alone, for `social`.
    #[command(hide = true)]
    Posts {
        /// Proxy of its requests.
        proxy: String,
        /// Certificate that it trusts.
        ca_file: PathBuf,
        /// Prefix of the posts' addresses.
        prefix: String,
        /// Number of the first post.
        first: u64,
    },
}

#[tokio::main]
async fn main() -> Result<()> {
    match BenchTopic::parse() {
        BenchTopic::Lookup => lookup::run().await,
        BenchTopic::Pages => pages::run().await,
        BenchTopic::Fetch => fetch::run().await,
        BenchTopic::Many => many::run(),
        BenchTopic::Jobs => jobs::run().await,
        BenchTopic::Social => social::run(),
        BenchTopic::Sound => sound::run().await,
        BenchTopic::Charged => v1_transcripts::run().await,
        BenchTopic::Commits => commits::run().await,
        BenchTopic::Postgres => postgres::run().await,
        BenchTopic::Chat => chat::run().await,
        BenchTopic::Search { talks } => search::run(talks).await,
        BenchTopic::Budgets => budgets::run().await,
        BenchTopic::Overload => overload::run().await,
        BenchTopic::Soak { minutes } => soak::run(minutes).await,
        BenchTopic::All => {
            lookup::run().await?;
            pages::run().await?;
            fetch::run().await?;
            many::run()?;
            jobs::run().await?;
            social::run()?;
            sound::run().await?;
            v1_transcripts::run().await?;
            commits::run().await?;
            postgres::run().await?;
            chat::run().await?;
            search::run(search::TALKS).await?;
            archive::run(None, false).await?;
            overload::run().await?;
            budgets::run().await
        }
        BenchTopic::Archive { data, fill } => archive::run(data.as_deref(), fill).await,
        BenchTopic::Dictionary { file } => dictionary::train(&file),
        BenchTopic::Fill { data, videos } => lookup::fill(&data, videos).await,
        BenchTopic::Bare { response } => baseline_hyper::serve(&response).await,
        BenchTopic::Least { proxy, ca_file } => baseline_reqwest::serve(&proxy, &ca_file).await,
        BenchTopic::Library { proxy, ca_file, prefix, concurrency } => {
            library::serve(proxy, ca_file, prefix, concurrency).await
        }
        BenchTopic::Posts { proxy, ca_file, prefix, first } => {
            library::serve_posts(proxy, ca_file, prefix, first).await
        }
    }
}
