//! The transcripts of a job as a ZIP file, sent file by file.
//!
//! Only the file that is being compressed is in memory, for each file before it an entry of the directory, and why
//! transcripts are lost.

use std::{
    collections::{HashMap, HashSet},
    io::{self, Write},
    mem::take,
    sync::{Arc, Mutex, PoisonError},
};

use axum::body::Body;
use bytes::Bytes;
use transcript_core::{
    accounts::{
        V1Error,
        jobs::{ItemFailure, ItemTranscript, JobItem},
    },
    archive::StoredTranscript,
    captions::TextFormat,
    wire::v1::JobResult,
};
use zip::{
    CompressionMethod, ZipWriter,
    write::{SimpleFileOptions, StreamWriter},
};

use super::items::ItemReader;
#[cfg(feature = "documents")]
use crate::page::{pdf::pdf_document, word::word_document};
use crate::{
    api::ProblemResponse,
    page::{PageContext, account::csv_field, transcript::file_name},
    state::write_document,
};

/// Media type of the file.
pub(super) const ZIP: &str = "application/zip";
/// Name of the file that lists the items without a transcript.
const FAILURES: &str = "failures.csv";
/// First line of that file. Without the mark before it, Excel does not read UTF-8.
const FAILURES_HEADER: &str = "\u{FEFF}index,url,video_id,status,reason,message\r\n";
/// Rows of that file in one part of the body.
const ROWS_PER_PART: usize = 100;

/// Form of each transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ZipFormat {
    /// Text, Markdown or subtitles.
    Text(TextFormat),
    /// A document for word processors.
    #[cfg(feature = "documents")]
    Docx,
    /// PDF; a document for word processors in place of one that cannot be written.
    #[cfg(feature = "documents")]
    Pdf,
}

impl ZipFormat {
    /// The names of all formats.
    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        let documents: &[&str] = if cfg!(feature = "documents") { &["docx", "pdf"] } else { &[] };
        TextFormat::ALL.map(TextFormat::as_str).into_iter().chain(documents.iter().copied())
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name {
            #[cfg(feature = "documents")]
            "docx" => Some(Self::Docx),
            #[cfg(feature = "documents")]
            "pdf" => Some(Self::Pdf),
            name => TextFormat::from_wire(name).map(Self::Text),
        }
    }

    fn file_ending(self) -> &'static str {
        match self {
            Self::Text(TextFormat::Text) => "txt",
            Self::Text(format) => format.as_str(),
            #[cfg(feature = "documents")]
            Self::Docx => "docx",
            #[cfg(feature = "documents")]
            Self::Pdf => "pdf",
        }
    }

    /// Writes a transcript, and returns the format of the file.
    #[cfg_attr(not(feature = "documents"), expect(unused_variables, reason = "texts have no messages"))]
    fn write(self, context: &PageContext, stored: &StoredTranscript) -> io::Result<(Vec<u8>, Self)> {
        match self {
            Self::Text(format) => Ok((format.format(&stored.transcript).into_bytes(), self)),
            #[cfg(feature = "documents")]
            Self::Docx => Ok((word_document(context, stored)?, self)),
            #[cfg(feature = "documents")]
            Self::Pdf => match pdf_document(context, stored) {
                Ok(file) => Ok((file, self)),
                Err(error) => {
                    tracing::debug!(video = %stored.transcript.video, %error, "PDF replaced by DOCX");
                    Ok((word_document(context, stored)?, Self::Docx))
                }
            },
        }
    }
}

/// The written bytes that were not sent.
#[derive(Clone, Default)]
struct WrittenBytes(Arc<Mutex<Vec<u8>>>);

impl WrittenBytes {
    fn take(&self) -> Vec<u8> {
        take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for WrittenBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

type Writer = ZipWriter<StreamWriter<WrittenBytes>>;

/// A ZIP file that is still to be sent.
pub(super) struct ZipBody {
    items: ItemReader,
    /// Reads the items again for the list of failures.
    again: ItemReader,
    context: PageContext,
    format: ZipFormat,
    /// `None` after the end of the file, and while another thread has it.
    writer: Option<Writer>,
    written: WrittenBytes,
    /// The positions of the items whose transcripts were sent.
    sent: HashSet<u64>,
    /// Why delivered transcripts cannot be sent, by the position of the item.
    lost: HashMap<u64, ItemFailure>,
    state: ZipBodyState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ZipBodyState {
    Files,
    Failures,
    End,
}

impl ZipBody {
    /// The body of these items, which begin with position `from`.
    pub(super) fn new(
        items: ItemReader,
        context: PageContext,
        format: ZipFormat,
        from: u64,
        limit: u32,
    ) -> Self {
        let written = WrittenBytes::default();
        Self {
            again: items.restart(from, limit),
            items,
            context,
            format,
            writer: Some(ZipWriter::new_stream(written.clone())),
            written,
            sent: HashSet::new(),
            lost: HashMap::new(),
            state: ZipBodyState::Files,
        }
    }

    pub(super) fn into_body(self) -> Body {
        Body::from_stream(futures_util::stream::try_unfold(self, |mut body| async move {
            let part = body.next_part().await.inspect_err(|error| {
                tracing::warn!(job = %body.items.job().id, %error, "files of a job broken off");
            })?;
            Ok::<_, V1Error>(part.map(|part| (part, body)))
        }))
    }

    /// The next part of the body; `None` at its end.
    async fn next_part(&mut self) -> Result<Option<Bytes>, V1Error> {
        if self.state == ZipBodyState::Files {
            while let Some(item) = self.items.next().await? {
                match self.items.transcript(&item).await? {
                    ItemTranscript::Delivered(stored) => return self.file(&item, stored).await.map(Some),
                    ItemTranscript::Lost(failure) => {
                        self.lost.insert(item.index, failure);
                    }
                    ItemTranscript::Undelivered => {}
                }
            }
            self.state = ZipBodyState::Failures;
            self.write(|writer| {
                writer.start_file(FAILURES, options())?;
                writer.write_all(FAILURES_HEADER.as_bytes())
            })?;
        }
        if self.state == ZipBodyState::End {
            return Ok(None);
        }
        let rows = self.failures().await?;
        if rows.is_empty() {
            self.state = ZipBodyState::End;
            let writer = self.writer.take().ok_or_else(unwritten)?;
            writer.finish().map_err(|error| failed(&error))?;
        } else {
            self.write(|writer| writer.write_all(rows.as_bytes()))?;
        }
        Ok(Some(self.written.take().into()))
    }

    /// The file of a transcript. Memory for a large one is reserved.
    async fn file(&mut self, item: &JobItem, stored: StoredTranscript) -> Result<Bytes, V1Error> {
        let app = self.items.app();
        // The place comes first: a request that waits for it holds no memory that others need.
        let permit = Arc::clone(&app.file_writers).acquire_owned().await.map_err(|_| unwritten())?;
        let budget = app.account_budget.clone();
        let (context, format, index) = (self.context.clone(), self.format, item.index);
        let mut writer = self.writer.take().ok_or_else(unwritten)?;
        let write = move |stored: &StoredTranscript| {
            let (file, format) = format.write(&context, stored)?;
            writer.start_file(entry_name(index, stored, format), options())?;
            writer.write_all(&file)?;
            Ok::<_, io::Error>(writer)
        };
        let written = write_document(permit, &budget, stored, write).await;
        let (writer, reserved) = written.map_err(|refusal| unbuilt(&refusal))?;
        self.writer = Some(writer.map_err(|error| failed(&error))?);
        self.sent.insert(item.index);
        // The file is much smaller than what writing it takes.
        Ok(budget.sent_bytes(self.written.take(), reserved))
    }

    /// The next rows of items without a file; empty at the end.
    async fn failures(&mut self) -> Result<String, V1Error> {
        let mut rows = String::new();
        let mut count = 0;
        while count < ROWS_PER_PART
            && let Some(item) = self.again.next().await?
        {
            if !self.sent.contains(&item.index) {
                rows.push_str(&failure_row(&item, self.lost.get(&item.index)));
                count += 1;
            }
        }
        Ok(rows)
    }

    fn write(&mut self, write: impl FnOnce(&mut Writer) -> io::Result<()>) -> Result<(), V1Error> {
        let writer = self.writer.as_mut().ok_or_else(unwritten)?;
        write(writer).map_err(|error| failed(&error))
    }
}

/// Options of each file. Readers of a stream find the end of a file only if it is compressed.
fn options() -> SimpleFileOptions {
    SimpleFileOptions::default().compression_method(CompressionMethod::Deflated)
}

/// The name of a file: unique by its position, and valid on every system.
fn entry_name(index: u64, stored: &StoredTranscript, format: ZipFormat) -> String {
    let (transcript, ending) = (&stored.transcript, format.file_ending());
    let title = file_name(transcript.title.as_deref().unwrap_or_default(), &transcript.video);
    format!("{:04}-{title}-{}.{ending}", index.saturating_add(1), transcript.video.id())
}

/// The row of an item without a file.
fn failure_row(item: &JobItem, loss: Option<&ItemFailure>) -> String {
    let result = JobResult::new(item, loss);
    let field = |text: Option<&str>| csv_field(text.unwrap_or_default());
    // Unchanged, for programs that send it again: letters, digits, `-` and `_` are no formula that calls anything.
    let video_id = result.video_id.as_deref().unwrap_or_default();
    format!(
        "{},{},\"{video_id}\",{},{},{}\r\n",
        item.index,
        csv_field(&result.url),
        result.status,
        field(result.reason.as_deref()),
        field(result.message.as_deref())
    )
}

/// The error of a part that was not built: there is no memory, or the work panicked.
pub(super) fn unbuilt(refusal: &ProblemResponse) -> V1Error {
    V1Error::Internal(refusal.detail().to_owned())
}

fn unwritten() -> V1Error {
    V1Error::Internal("The file cannot be written.".to_owned())
}

fn failed(error: &dyn std::error::Error) -> V1Error {
    tracing::error!(%error, "file of a job failed");
    unwritten()
}
