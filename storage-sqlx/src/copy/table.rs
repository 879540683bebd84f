//! The tables of both parts, and their differences between the two databases.
//!
//! Columns are not listed here: they are read from both databases. A column that only one of them has must be named
//! here, otherwise nothing is copied.

/// One of the two stores.
#[derive(Debug)]
pub(super) struct TablePart {
    /// Name in a database server's version table, and in messages.
    pub(super) name: &'static str,
    /// The tables, each after those that it references.
    pub(super) tables: &'static [CopyTable],
}

/// A table, and the key of its rows.
#[derive(Debug)]
pub(super) struct CopyTable {
    pub(super) name: &'static str,
    /// One or two columns that are unique together and indexed in both databases.
    pub(super) key: &'static [&'static str],
    /// Columns that exist only in files.
    pub(super) only_files: &'static [&'static str],
    /// Columns that exist only on a database server.
    pub(super) only_server: &'static [&'static str],
    /// The column that orders the rows: unique in a file, on a server unique only within a group.
    pub(super) number: Option<&'static str>,
    /// Number of rows per batch.
    pub(super) batch: u32,
}

impl CopyTable {
    const fn new(name: &'static str, key: &'static [&'static str]) -> Self {
        Self { name, key, only_files: &[], only_server: &[], number: None, batch: 1_000 }
    }

    const fn numbered(self, number: &'static str) -> Self {
        Self { number: Some(number), ..self }
    }

    const fn differing(self, files: &'static [&'static str], server: &'static [&'static str]) -> Self {
        Self { only_files: files, only_server: server, ..self }
    }

    /// The stored name of the column that is called `name` here.
    pub(super) fn stored_name<'a>(&self, name: &'a str, is_files: bool) -> &'a str {
        if is_files && self.name == LEDGER_POOLS && name == "number" { "id" } else { name }
    }

    /// Whether a row names no video: in files the row of its transcript does.
    pub(super) fn lacks_video(&self, is_files: bool) -> bool {
        is_files && matches!(self.name, BODIES | WORDS | VECTORS)
    }
}

pub(super) const LEDGER_ENTRIES: &str = "ledger_entries";
pub(super) const LEDGER_POOLS: &str = "ledger_pools";
pub(super) const LEDGER_HOLDS: &str = "ledger_holds";
pub(super) const LIMITS: &str = "limits";
pub(super) const CHANGES: &str = "changes";
pub(super) const TRACKS: &str = "tracks";
pub(super) const TRANSCRIPTS: &str = "transcripts";
pub(super) const BODIES: &str = "bodies";
pub(super) const COLD: &str = "cold";
pub(super) const WORDS: &str = "words";
pub(super) const VECTORS: &str = "vectors";
pub(super) const SELECTORS: &str = "wishes";
/// The name of all [`VIDEO_TABLES`] in progress reports.
pub(super) const VIDEOS: &str = "videos";

/// Keys, accounts and the ledger.
pub(super) const MAIN: TablePart = TablePart {
    name: "main",
    tables: &[
        CopyTable::new("accounts", &["id"]).numbered("seq"),
        CopyTable::new("keys", &["digest"]).numbered("seq"),
        CopyTable::new("tokens", &["digest"]),
        CopyTable::new("secrets", &["name"]),
        CopyTable::new("sessions", &["digest"]),
        CopyTable::new("sign_in_links", &["digest"]),
        CopyTable::new("admin_tokens", &["name"]),
        CopyTable::new("audit_log", &["id"]).numbered("seq"),
        CopyTable::new(LIMITS, &["bucket"]).differing(&[], &["version"]),
        // Each row holds a whole response.
        CopyTable { batch: 100, ..CopyTable::new("replies", &["key"]) },
        CopyTable::new("outbox", &["id"]).numbered("seq"),
        CopyTable::new("orders", &["id"]),
        CopyTable::new("jobs", &["id"]),
        CopyTable::new("job_items", &["job", "idx"]),
        CopyTable::new("job_lists", &["job"]),
        CopyTable::new("job_events", &["job", "number"]),
        CopyTable::new("job_event_attempts", &["event", "attempt"]),
        CopyTable::new("webhook_secrets", &["account"]),
        CopyTable::new(LEDGER_ENTRIES, &["wallet", "seq"]).numbered("seq"),
        // After the entries, because each pool on a server stores its newest entry.
        CopyTable::new(LEDGER_POOLS, &["wallet", "bucket"])
            .numbered("number")
            .differing(&[], &["version", "last_entry"]),
        // The legs are one text in files, and parallel arrays on a server.
        CopyTable::new(LEDGER_HOLDS, &["id"]).differing(
            &[],
            &["wallets", "amounts", "spent", "share_legs", "share_buckets", "share_caps", "share_amounts"],
        ),
        CopyTable::new("ledger_open", &["hold", "wallet"]),
        CopyTable::new("ledger_transfers", &["id"]),
    ],
};

/// Transcripts. The [`VIDEO_TABLES`] come first, all rows of a video together.
pub(super) const ARCHIVE: TablePart = TablePart {
    name: "archive",
    tables: &[
        CopyTable::new("absences", &["video", "wish"]),
        CopyTable::new("leases", &["video", "wish"]),
        CopyTable::new("links", &["address"]),
        CopyTable::new("withdrawals", &["video"]),
        // Triggers of a file list the tracks.
        CopyTable::new("details", &["video"]).differing(&["tracks"], &[]),
        // The last one: in files the rows before it count as changes.
        CopyTable::new(CHANGES, &["only_row"]),
    ],
};

/// Tables of a video with numbered rows: unique in a file, on a server unique only within the video.
pub(super) const VIDEO_TABLES: [CopyTable; 7] = [
    CopyTable::new(TRACKS, &["video", "id"]).numbered("id"),
    // `body` holds transcripts archived before the table of bodies existed.
    CopyTable::new(TRANSCRIPTS, &["video", "id"]).numbered("id").differing(&["body_length", "body"], &[]),
    // In files the row of its transcript names the video.
    CopyTable::new(BODIES, &["video", "transcript"]),
    CopyTable::new(SELECTORS, &["video", "wish"]),
    // In files a cold transcript is several rows, with ids derived from the transcript's.
    CopyTable::new(COLD, &["video", "transcript"]),
    // As bodies.
    CopyTable::new(WORDS, &["video", "transcript"]),
    CopyTable::new(VECTORS, &["video", "transcript"]),
];

/// Tables that the copy skips, for the test that covers every table.
///
/// - What belongs to one database: its statistics, schema version, migration and leader leases, and the copy's state.
/// - Videos to be purged from the caches in front of the old servers.
/// - The search index, which is built again from the archive.
#[cfg(test)]
pub(super) const NOT_CARRIED: [&str; 13] = [
    "changed_videos",
    "figures",
    "schema_version",
    "search_documents",
    "search_state",
    "search_terms",
    "search_videos",
    "sqlite_sequence",
    "turns",
    "unindexed_videos",
    "verbatim_migrating",
    "verbatim_schema",
    super::copier::STATE_TABLE,
];

impl TablePart {
    /// All tables of the part.
    pub(super) fn all(&self) -> impl Iterator<Item = &'static CopyTable> {
        let videos: &'static [CopyTable] = if self.name == ARCHIVE.name { &VIDEO_TABLES } else { &[] };
        videos.iter().chain(self.tables)
    }

    /// Whether the part has videos.
    pub(super) fn has_videos(&self) -> bool {
        self.name == ARCHIVE.name
    }
}
