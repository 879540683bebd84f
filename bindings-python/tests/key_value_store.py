"""Stores of keys and values in SQLite, as a program writes them."""

import asyncio
import sqlite3


class SqliteStore:
    """Keys and values in a table: an archive in twenty lines."""

    def __init__(self, path=":memory:"):
        self.db = sqlite3.connect(path, check_same_thread=False)
        self.db.execute("CREATE TABLE IF NOT EXISTS entries (key TEXT PRIMARY KEY COLLATE BINARY, value BLOB) WITHOUT ROWID")

    def get(self, key):
        row = self.db.execute("SELECT value FROM entries WHERE key = ?", (key,)).fetchone()
        return row and row[0]

    def write(self, changes):
        with self.db:
            for key, value in changes.items():
                self.db.execute("DELETE FROM entries WHERE key = ?", (key,))
                if value is not None:
                    self.db.execute("INSERT INTO entries VALUES (?, ?)", (key, value))

    def list(self, prefix, after, limit):
        sql = "SELECT key, value FROM entries WHERE key > ? AND substr(key, 1, ?) = ? ORDER BY key LIMIT ?"
        return self.db.execute(sql, (after, len(prefix), prefix, limit)).fetchall()


class AwaitedStore(SqliteStore):
    async def get(self, key):
        return super().get(key)

    async def write(self, changes):
        await asyncio.sleep(0)
        super().write(changes)
