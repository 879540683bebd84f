"""An example of a custom archive, by the contract of the port."""

from __future__ import annotations

import copy
import threading
from typing import Any

import verbatim_transcripts as vt
from verbatim_transcripts.testing import content_digest


def key(video: dict) -> tuple[str, str]:
    """Sort key of a video in pages."""
    platforms = ["video_site", "short_video", "reels", "microblog"]
    return (str(platforms.index(video["platform"])), video["id"])


def same(one: dict, other: dict) -> bool:
    return all(one[field] == other[field] for field in ("language", "kind", "name"))


class VideoRecord:
    def __init__(self, video: dict) -> None:
        self.video = video
        self.withdrawn = False
        self.transcripts: list[dict] = []
        self.selectors: dict[str, int] = {}
        self.absences: dict[str, dict] = {}
        self.tracks: list[dict] = []
        self.metadata: dict = {}

    def details(self) -> dict:
        return copy.deepcopy({"metadata": self.metadata, "tracks": self.tracks})

    def add_track(self, track: dict) -> None:
        for known in self.tracks:
            if same(known, track):
                known["original"] = known["original"] or track["original"]
                return
        self.tracks.append(copy.deepcopy(track))

    def stored(self, selector: str) -> dict | None:
        if selector not in self.selectors:
            return None
        return {**self.transcripts[self.selectors[selector]], "details": self.details()}

    def add(self, request: dict, revision: int, digest: list[int]) -> int:
        self.transcripts.append(
            {
                "transcript": request["transcript"],
                "revision": revision,
                "content_sha256": digest,
                "parser_version": request["parser_version"],
                "stored_at": request["now"],
            }
        )
        return len(self.transcripts) - 1

    def put(self, request: dict, digest: list[int]) -> None:
        stored = [found for found in map(self.stored, request["wishes"]) if found]
        if request["replace"] and any(found["content_sha256"] != digest for found in stored):
            index = self.add(request, max(found["revision"] for found in stored) + 1, digest)
            self.selectors.update(dict.fromkeys(request["wishes"], index))
        elif any(selector not in self.selectors for selector in request["wishes"]):
            indexes = [n for n, found in enumerate(self.transcripts) if found["content_sha256"] == digest]
            index = indexes[-1] if indexes else self.add(request, 1, digest)
            for selector in request["wishes"]:
                self.selectors.setdefault(selector, index)
        for track in [*request["known_tracks"], request["transcript"]["track"]]:
            self.add_track(track)
        # Unknown fields are absent.
        self.metadata = {**self.metadata, **request["metadata"]}
        for selector in request["wishes"]:
            self.absences.pop(selector, None)

    def archived(self, track: dict) -> dict:
        found = [stored for stored in self.transcripts if same(stored["transcript"]["track"], track)]
        newest = max(found, key=lambda stored: stored["revision"], default=None)
        selectors = [
            selector
            for selector, index in sorted(self.selectors.items(), key=lambda item: (item[0] != "default", item[0]))
            if same(self.transcripts[index]["transcript"]["track"], track)
        ]
        return {
            "video": self.video,
            "track": track,
            "wishes": selectors,
            "revision": newest and newest["revision"],
            "stored_at": newest and newest["stored_at"],
        }


class CustomArchive:
    """Archive in dictionaries, behind one lock."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.records: dict[tuple[str, str], VideoRecord] = {}
        self.leases: dict[tuple, tuple[str, int]] = {}
        self.short_links: dict[str, dict] = {}
        self.change_count = 0

    def record(self, video: dict) -> VideoRecord:
        return self.records.setdefault(key(video), VideoRecord(video))

    def find(self, video: dict, selector: str, now: int) -> Any:
        with self.lock:
            record = self.record(video)
            if record.withdrawn:
                return "withdrawn"
            if stored := record.stored(selector):
                return {"transcript": copy.deepcopy(stored)}
            absence = record.absences.get(selector)
            return {"absent": absence} if absence and absence["until"] > now else "nothing"

    def tracks(self, video: dict) -> list:
        with self.lock:
            record = self.record(video)
            return [] if record.withdrawn else [copy.deepcopy(record.archived(track)) for track in record.tracks]

    def put(self, request: dict) -> dict:
        if not request["wishes"] or not request["transcript"]["segments"]:
            raise vt.InvalidInput("a request needs segments and at least one track selector")
        if request["transcript"]["video"] != request["video"]:
            raise vt.InvalidInput("the transcript is of another video")
        digest = content_digest(request["transcript"])
        with self.lock:
            record = self.record(request["video"])
            if record.withdrawn:
                raise vt.ConflictError("the video is withdrawn")
            before, details = dict(record.selectors), record.details()
            record.put(request, digest)
            self.change_count += bool(before) and (before, details) != (record.selectors, record.details())
            return copy.deepcopy(record.stored(request["wishes"][0]))

    def put_absence(self, absence: dict) -> None:
        with self.lock:
            self.record(absence["video"]).absences[absence["wish"]] = absence

    def acquire_lease(self, lease: dict) -> Any:
        with self.lock:
            name = (key(lease["video"]), lease["wish"])
            holder, until = self.leases.get(name, ("", 0))
            if holder == lease["holder"]:
                lease["until"] = max(lease["until"], until)
            elif until > lease["now"]:
                return {"busy": {"until": until}}
            self.leases[name] = (lease["holder"], lease["until"])
            return "claimed"

    def release_lease(self, video: dict, selector: str, holder: str) -> None:
        with self.lock:
            name = (key(video), selector)
            if self.leases.get(name, ("", 0))[0] == holder:
                del self.leases[name]

    def short_link(self, link: dict) -> dict | None:
        with self.lock:
            return self.short_links.get(link["address"])

    def put_short_link(self, link: dict, video: dict) -> None:
        with self.lock:
            self.short_links.setdefault(link["address"], video)

    def withdraw(self, video: dict, withdrawn: bool, now: int) -> None:
        with self.lock:
            self.record(video).withdrawn = withdrawn
            self.change_count += 1

    def delete(self, video: dict) -> None:
        with self.lock:
            withdrawn = self.record(video).withdrawn
            self.records[key(video)] = VideoRecord(video)
            self.records[key(video)].withdrawn = withdrawn
            self.change_count += 1

    def change_counter(self) -> int:
        with self.lock:
            return self.change_count

    def list_tracks(self, page: dict) -> dict:
        with self.lock:
            tracks = [
                ("/".join((*name, f"{index:06}")), copy.deepcopy(record.archived(track)))
                for name, record in sorted(self.records.items())
                for index, track in enumerate(record.tracks)
            ]
        return paged([(name, track) for name, track in tracks if track["revision"] is not None], page)

    def list_withdrawn(self, page: dict) -> dict:
        with self.lock:
            videos = [(f"{s.video['platform']}/{s.video['id']}", s.video) for s in self.records.values() if s.withdrawn]
        return paged(sorted(videos, key=lambda item: item[0]), page)

    def stats(self) -> dict:
        with self.lock:
            records = self.records.values()
            stored = [found for record in records for found in record.transcripts]
            return {
                "videos": sum(bool(record.transcripts) for record in records),
                "transcripts": len(stored),
                "absences": sum(len(record.absences) for record in records),
                "withdrawn": sum(record.withdrawn for record in records),
                "links": len(self.short_links),
                "bytes": sum(len(s["text"]) + 16 for found in stored for s in found["transcript"]["segments"]),
            }


def paged(items: list[tuple[str, Any]], page: dict) -> dict:
    """Returns one page of sorted, named items."""
    size = min(max(page["limit"], 1), 1000)
    rest = [item for item in items if page["after"] is None or item[0] > page["after"]]
    return {"items": [item for _, item in rest[:size]], "next": rest[size - 1][0] if len(rest) > size else None}
