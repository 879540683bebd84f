//! Guide: from a first transcript to a program with its own archive, supplier, ledger and server.
//!
//! # A transcript
//!
//! [`Verbatim::open`](crate::Verbatim::open) builds everything from [`Options`](crate::Options), and
//! [`Verbatim::get`](crate::Verbatim::get) returns the transcript of a link: archived, or fetched and archived.
//!
//! ```no_run
//! use verbatim::{Options, StorageOptions, Verbatim};
//!
//! # async fn example() -> Result<(), verbatim::Error> {
//! let options = Options::default().with_storage(StorageOptions::in_folder("/var/lib/transcripts"));
//! let verbatim = Verbatim::open(options).await?;
//! let transcript = verbatim.get("https://youtu.be/dQw4w9WgXcQ").await?.into_transcript()?;
//! for segment in &transcript.segments {
//!     println!("{} ms: {}", segment.start_ms, segment.text);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! [`Transcript`](crate::transcript_core::transcript::Transcript) has the segments, the track and the title; its
//! `to_text`, `to_markdown`, `to_srt` and `to_webvtt` write the formats. A program that ends calls
//! [`Verbatim::close`](crate::Verbatim::close), which waits for running fetches. A clone of a `Verbatim` is a handle to
//! the same parts.
//!
//! # A language, and a missing transcript
//!
//! That a video has no transcript is an outcome, and not an error: a program often has another answer.
//! [`GetOutcome::into_transcript`](crate::GetOutcome::into_transcript) makes an error of it, with
//! [`UnavailableTranscript`](crate::UnavailableTranscript) as its source.
//!
//! ```
//! use verbatim::{GetOutcome, GetRequest, Options, Verbatim};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), verbatim::Error> {
//! let verbatim = Verbatim::open(Options::default().without_suppliers()).await?;
//! let request = GetRequest::new("https://youtu.be/dQw4w9WgXcQ").with_language("de");
//! match verbatim.get(request).await? {
//!     GetOutcome::Found(found) => println!("{}", found.stored.transcript),
//!     GetOutcome::Missing(missing) => {
//!         assert_eq!(missing.reason.as_str(), "config_error");
//!         assert_eq!(missing.message, "There is no source of new transcripts for YouTube.");
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Many transcripts
//!
//! [`Verbatim::get_many`](crate::Verbatim::get_many) is a stream of results, each with the position of its request. It
//! runs 32 requests at a time, and waits while a platform or a supplier is paused, as a [`Batch`](crate::Batch) does.
//! [`TranscriptStream::in_order`](crate::TranscriptStream::in_order) returns the results in the order of the requests.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), verbatim::Error> {
//! # let verbatim = verbatim::Verbatim::open(verbatim::Options::default().without_suppliers()).await?;
//! let links = ["https://youtu.be/dQw4w9WgXcQ", "https://youtu.be/L1ghth0use1", "no link"];
//! let mut results = verbatim.get_many(links).with_concurrency(8);
//! while let Some(item) = results.next().await {
//!     let progress = results.progress();
//!     println!("{} of {}", progress.done(), progress.total);
//!     if let Err(error) = item.into_transcript() {
//!         println!("{error}");
//!     }
//! }
//! assert_eq!((results.progress().missing, results.progress().failed), (2, 1));
//! # Ok(())
//! # }
//! ```
//!
//! # A playlist or a channel
//!
//! [`Verbatim::videos`](crate::Verbatim::videos) is a stream of the videos in a playlist or channel of YouTube, read
//! page by page as it is polled; with [`VideoList::search`](transcript_core::video::VideoList::search) and
//! [`Verbatim::videos_of`](crate::Verbatim::videos_of), those that YouTube finds for words. A list that does not exist
//! is an error of the stream, with [`UnavailableList`](crate::UnavailableList) as its source.
//!
//! ```no_run
//! # async fn example(verbatim: verbatim::Verbatim) -> Result<(), verbatim::Error> {
//! let mut videos = verbatim.videos("https://www.youtube.com/playlist?list=PL0123456789abcdef")?.with_limit(50);
//! let mut links = Vec::new();
//! while let Some(listed) = videos.next().await {
//!     links.push(listed?.video.address());
//! }
//! let mut results = verbatim.get_many(links);
//! # while results.next().await.is_some() {}
//! # Ok(())
//! # }
//! ```
//!
//! # Questions and search
//!
//! [`Verbatim::chat`](crate::Verbatim::chat) answers questions about a transcript; all quotations and citations are
//! checked against it. Without a chat model the answer is its own passages.
//! [`Verbatim::search`](crate::Verbatim::search) finds videos in the whole archive.
//!
//! ```
//! # #[cfg(not(feature = "search"))]
//! # fn main() {}
//! # #[cfg(feature = "search")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use verbatim::{
//!     ImportRequest, Options, Verbatim,
//!     transcript_core::{chat::Question, search::SearchParams},
//! };
//!
//! let verbatim = Verbatim::open(Options::default().without_suppliers()).await?;
//! let import = ImportRequest {
//!     link: "https://youtu.be/dQw4w9WgXcQ".to_owned(),
//!     captions: b"1\n00:00:01,000 --> 00:00:03,000\nThe gate opens at nine.\n".to_vec(),
//!     language: Some("en".to_owned()),
//!     ..ImportRequest::default()
//! };
//! verbatim.tools().import(import).await?;
//!
//! let transcript = verbatim.get("https://youtu.be/dQw4w9WgXcQ").await?.into_transcript()?;
//! let question = Question::new("When does the gate open?", Vec::new())?;
//! let answer = verbatim.chat().answer(transcript, question).await?;
//! assert_eq!(answer.response, "“The gate opens at nine.” [0:01]");
//!
//! let params = SearchParams { query: "gate".to_owned(), ..SearchParams::default() };
//! let page = verbatim.search().search(&params).await?;
//! assert_eq!(page.hits.len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! An [`Embedder`](crate::transcript_core::chat::Embedder) finds passages by their meaning beside their words. One that
//! fails, panics or takes longer than 30 seconds fails no answer.
//!
//! ```
//! # #[cfg(not(feature = "chat"))]
//! # fn main() {}
//! # #[cfg(feature = "chat")]
//! # fn main() {
//! use std::sync::Arc;
//!
//! use async_trait::async_trait;
//! use verbatim::{
//!     Error, Options,
//!     transcript_core::chat::{EmbedPurpose, Embedder},
//! };
//!
//! /// Counts letters, in place of a model.
//! #[derive(Debug)]
//! struct LetterCounts;
//!
//! #[async_trait]
//! impl Embedder for LetterCounts {
//!     fn model(&self) -> &str {
//!         "letter-counts-1"
//!     }
//!
//!     async fn embed(&self, texts: Vec<String>, _: EmbedPurpose) -> Result<Vec<Vec<f32>>, Error> {
//!         let counts = |text: &String| {
//!             ('a'..='z').map(|letter| text.matches(letter).count() as f32).collect::<Vec<f32>>()
//!         };
//!         Ok(texts.iter().map(counts).collect())
//!     }
//! }
//!
//! let options = Options::default().with_embedder(Arc::new(LetterCounts));
//! options.check().unwrap();
//! # }
//! ```
//!
//! # A custom supplier
//!
//! The traits that a program implements are async traits of the crate `async-trait`, on which it depends too.
//!
//! A [`Supplier`](crate::transcript_core::supplier::Supplier) returns the transcript of a video, or a
//! [`SupplyError`](crate::transcript_core::supplier::SupplyError) whose reason decides what is stored, retried and
//! reported. [`Options::with_supplier`](crate::Options::with_supplier) registers it for the platforms that it names.
//! The example `own_supplier` reads caption files from a folder:
//! `cargo run -p verbatim-transcripts --example own_supplier`.
//!
//! # A custom archive
//!
//! [`KeyValueArchive`](crate::transcript_core::archive::KeyValueArchive) makes an archive of any store with three
//! functions: read a key, write some keys in one transaction, list keys in order. The example `own_archive` has one in
//! forty lines. An archive with more than one process implements
//! [`Archive`](crate::transcript_core::archive::Archive) itself; the feature `testing` of the core has the conformance
//! suite for it. [`Options::with_archive`](crate::Options::with_archive) registers either.
//!
//! The search index is in memory then, and built when it is first searched. For changes after that, the archive
//! implements [`unindexed_videos`](crate::transcript_core::archive::Archive::unindexed_videos),
//! [`delete_unindexed_videos`](crate::transcript_core::archive::Archive::delete_unindexed_videos) and
//! [`record_unindexed_video`](crate::transcript_core::archive::Archive::record_unindexed_video), as `KeyValueArchive`
//! does.
//!
//! # A custom ledger
//!
//! A [`Ledger`](crate::transcript_core::ledger::Ledger) over another database needs no arithmetic:
//! [`rules`](crate::transcript_core::ledger::rules) has the effect of each operation on rows, which serde can store.
//! Each operation that changes something is a step, such as
//! [`HoldStep`](crate::transcript_core::ledger::rules::HoldStep). It runs in one serializable transaction, or in one
//! that also excludes concurrent steps on the same wallet or id: rows that do not exist yet cannot be locked. `load`
//! also loads the pools of open holds and of transfers
//! ([`RowKeys::pools_with`](crate::transcript_core::ledger::rules::RowKeys::pools_with)).
//!
//! ```
//! use verbatim::{
//!     Error,
//!     transcript_core::ledger::rules::{LedgerChanges, LedgerRows, LedgerStep, RowKeys},
//! };
//!
//! /// A transaction of the database. It ends without a change if it is dropped.
//! trait Transaction {
//!     fn load(&mut self, keys: &RowKeys<'_>) -> Result<LedgerRows, Error>;
//!     fn store(&mut self, changes: &LedgerChanges<'_>) -> Result<(), Error>;
//!     fn commit(self) -> Result<(), Error>;
//! }
//!
//! fn apply<S: LedgerStep>(mut transaction: impl Transaction, step: &S) -> Result<S::Outcome, Error> {
//!     step.check()?;
//!     let mut rows = transaction.load(&step.keys())?;
//!     let outcome = step.apply(&mut rows)?;
//!     if let Some(changes) = rows.changes() {
//!         transaction.store(&changes)?;
//!     }
//!     transaction.commit()?;
//!     Ok(outcome)
//! }
//! ```
//!
//! The feature `testing` of the core has the conformance suite, `ledger_conformance!`.
//! [`Options::with_ledger`](crate::Options::with_ledger) registers the ledger.
//!
//! # The ledger in your program
//!
//! [`Verbatim::ledger`](crate::Verbatim::ledger) is the double-entry ledger of the storage: credits are granted, held
//! before work, and settled afterwards, each step once per id however often it is repeated. A hold lasts for at most 15
//! minutes ([`LEASE_MAX`](crate::transcript_core::time::LEASE_MAX)), whatever its expiry is: longer work extends it.
//! The example `ledger` charges for a transcript. [`Verbatim::directory`](crate::Verbatim::directory) has the keys and
//! accounts.
//!
//! # Both APIs
//!
//! [`Verbatim::service`](crate::Verbatim::service) is the lookup API and the v1 API within the process, with their
//! keys, limits and charges: a [`Service`](crate::service::Service), as is a
//! [`ServiceClient`](crate::service::ServiceClient) of a server. The example `ask_a_server` uses the client.
//!
//! # A server in your axum program
//!
//! `reference_server::EmbeddedServer` of the package `verbatim-reference-server` is the HTTP server without its
//! listener: a tower service and an axum router over a `Verbatim`, whose archive and suppliers may be the program's
//! own. Its `start_work` starts the work on jobs, webhooks, payments, mails and the search index: without it, what the
//! server accepts stays queued. Its example `own_axum_app` serves another route beside it.
//!
//! # Names
//!
//! `use verbatim::*` hides nothing of the standard library: there is no `Result` among the names, and no `core`.
//!
//! ```
//! use verbatim::*;
//!
//! #[derive(Clone, Debug, Default, PartialEq)]
//! struct Links(Vec<String>);
//!
//! fn count(links: &Links) -> Result<usize, core::num::TryFromIntError> {
//!     let count = u8::try_from(core::cmp::max(links.0.len(), 1))?;
//!     Ok(std::mem::size_of::<u8>() * usize::from(count))
//! }
//!
//! let options: Option<Options> = Some(Options::default());
//! assert_eq!((count(&Links::default()), options.is_some()), (Ok(1), true));
//! ```
//!
//! # Runtime
//!
//! `Verbatim::open` is called within a Tokio runtime, and all work runs there. Its futures may be polled by any
//! executor. A `current_thread` runtime works only while one of its `block_on` calls runs: a program that polls the
//! futures on another executor opens the `Verbatim` on a multi-thread runtime.
