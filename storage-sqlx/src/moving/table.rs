//! The tables of both parts, and what differs between the two databases.
//!
//! Columns are not listed: both databases say which they have, and what one has and the other lacks is named here, or
//! nothing is copied.

/// One of the two stores.
#[derive(Debug)]
pub(super) struct Part {
    /// Its name in a database server's table of versions, and in messages.
    pub(super) name: &'static str,
    /// Its tables, each after those that it refers to.
    pub(super) tables: &'static [Table],
}

/// A table, and how its rows are told from each other.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: &'static str,
    /// One or two columns that no two rows have in common, with an index in both databases.
    pub(super) key: &'static [&'static str],
    /// Columns that only files have.
    pub(super) only_files: &'static [&'static str],
    /// Columns that only a database server has.
    pub(super) only_server: &'static [&'static str],
    /// The column that puts rows in an order: in a file no two rows have the same, on a server only those of one kind.
    pub(super) number: Option<&'static str>,
    /// How many rows are copied together.
    pub(super) batch: u32,
}

impl Table {
    const fn new(name: &'static str, key: &'static [&'static str]) -> Self {
        Self { name, key, only_files: &[], only_server: &[], number: None, batch: 1_000 }
    }

    const fn numbered(self, number: &'static str) -> Self {
        Self { number: Some(number), ..self }
    }

    const fn differing(self, files: &'static [&'static str], server: &'static [&'static str]) -> Self {
        Self { only_files: files, only_server: server, ..self }
    }

    /// The name of a column in files that is called `name` here.
    pub(super) fn in_files<'a>(&self, name: &'a str) -> &'a str {
        if self.name == LEDGER_POOLS && name == "number" { "id" } else { name }
    }

    /// Whether a column is carried from files.
    pub(super) fn carries_from_files(&self, name: &str) -> bool {
        !self.only_files.contains(&name)
    }

    /// Whether a column is carried from a server.
    pub(super) fn carries_from_server(&self, name: &str) -> bool {
        !self.only_server.contains(&name)
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
pub(super) const WISHES: &str = "wishes";
/// What the tables of [`VIDEO_TABLES`] are called together, where progress is told.
pub(super) const VIDEOS: &str = "videos";

/// Money and people.
pub(super) const MAIN: Part = Part {
    name: "main",
    tables: &[
        Table::new("accounts", &["id"]).numbered("seq"),
        Table::new("keys", &["digest"]).numbered("seq"),
        Table::new("tokens", &["digest"]),
        Table::new("secrets", &["name"]),
        Table::new(LIMITS, &["bucket"]).differing(&[], &["version"]),
        // A body is the whole answer.
        Table { batch: 100, ..Table::new("replies", &["key"]) },
        Table::new("outbox", &["id"]).numbered("seq"),
        Table::new("orders", &["id"]),
        Table::new(LEDGER_ENTRIES, &["wallet", "seq"]).numbered("seq"),
        // After the entries, whose newest number each pool notes on a server.
        Table::new(LEDGER_POOLS, &["wallet", "bucket"])
            .numbered("number")
            .differing(&[], &["version", "last_entry"]),
        // The legs are one text in files, and lists side by side on a server.
        Table::new(LEDGER_HOLDS, &["id"]).differing(
            &[],
            &["wallets", "amounts", "spent", "share_legs", "share_buckets", "share_caps", "share_amounts"],
        ),
        Table::new("ledger_open", &["hold", "wallet"]),
        Table::new("ledger_transfers", &["id"]),
    ],
};

/// Transcripts. Those of [`VIDEO_TABLES`] come first, all of a video together.
pub(super) const ARCHIVE: Part = Part {
    name: "archive",
    tables: &[
        Table::new("absences", &["video", "wish"]),
        Table::new("leases", &["video", "wish"]),
        Table::new("links", &["address"]),
        Table::new("withdrawals", &["video"]),
        // The last: in files the rows before it count as changes.
        Table::new(CHANGES, &["only_row"]),
    ],
};

/// What belongs to a video and is numbered: in a file over all videos, on a server within each.
pub(super) const VIDEO_TABLES: [Table; 5] = [
    Table::new(TRACKS, &["video", "id"]).numbered("id"),
    // `body` has what was archived before there was a table for bodies.
    Table::new(TRANSCRIPTS, &["video", "id"]).numbered("id").differing(&["body_length", "body"], &[]),
    // In files its transcript says whose video it is of.
    Table::new(BODIES, &["video", "transcript"]),
    Table::new(WISHES, &["video", "wish"]),
    // In files the compact form of a transcript is several rows, under numbers made of the transcript's.
    Table::new(COLD, &["video", "transcript"]),
];

/// What is nobody's to carry, for the test that no table is forgotten: figures, which each database keeps of its own rows, versions,
/// leases of migrations, whose turn it is, and the copy's own notes.
#[cfg(test)]
pub(super) const NOT_CARRIED: [&str; 7] = [
    "figures",
    "schema_version",
    "sqlite_sequence",
    "turns",
    "verbatim_migrating",
    "verbatim_schema",
    super::work::NOTES,
];

impl Part {
    /// All its tables.
    pub(super) fn all(&self) -> impl Iterator<Item = &'static Table> {
        let videos: &'static [Table] = if self.name == ARCHIVE.name { &VIDEO_TABLES } else { &[] };
        videos.iter().chain(self.tables)
    }

    /// Whether it has videos.
    pub(super) fn has_videos(&self) -> bool {
        self.name == ARCHIVE.name
    }
}
