//! The storage ports of Verbatim on SQLite, through sqlx.
