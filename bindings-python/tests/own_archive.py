"""An archive written in Python, by the contract of the port: what a program of one's own may look like."""

from __future__ import annotations

import copy
import threading
from typing import Any

import verbatim
from verbatim.testing import content_digest


def key(video: dict) -> tuple[str, str]:
    """A video's name, in the order in which pages have them."""
    platforms = ["video_site", "short_video", "reels", "microblog"]
    return (str(platforms.index(video["platform"])), video["id"])


def same(one: dict, other: dict) -> bool:
    return all(one[field] == other[field] for field in ("language", "kind", "name"))


class Shelf:
    def __init__(self, video: dict) -> None:
        self.video = video
        self.withdrawn = False
        self.transcripts: list[dict] = []
        self.wishes: dict[str, int] = {}
        self.absences: dict[str, dict] = {}
        self.tracks: list[dict] = []

    def know(self, track: dict) -> None:
        for known in self.tracks:
            if same(known, track):
                known["original"] = known["original"] or track["original"]
                return
        self.tracks.append(copy.deepcopy(track))

    def stored(self, wish: str) -> dict | None:
        return self.transcripts[self.wishes[wish]] if wish in self.wishes else None

    def add(self, keep: dict, revision: int, digest: list[int]) -> int:
        self.transcripts.append(
            {
                "transcript": keep["transcript"],
                "revision": revision,
                "content_sha256": digest,
                "parser_version": keep["parser_version"],
                "stored_at": keep["now"],
            }
        )
        return len(self.transcripts) - 1

    def keep(self, keep: dict, digest: list[int]) -> None:
        stored = [found for found in map(self.stored, keep["wishes"]) if found]
        if keep["replace"] and any(found["content_sha256"] != digest for found in stored):
            place = self.add(keep, max(found["revision"] for found in stored) + 1, digest)
            self.wishes.update(dict.fromkeys(keep["wishes"], place))
        elif any(wish not in self.wishes for wish in keep["wishes"]):
            places = [n for n, found in enumerate(self.transcripts) if found["content_sha256"] == digest]
            place = places[-1] if places else self.add(keep, 1, digest)
            for wish in keep["wishes"]:
                self.wishes.setdefault(wish, place)
        for track in [*keep["known_tracks"], keep["transcript"]["track"]]:
            self.know(track)
        for wish in keep["wishes"]:
            self.absences.pop(wish, None)

    def archived(self, track: dict) -> dict:
        found = [stored for stored in self.transcripts if same(stored["transcript"]["track"], track)]
        newest = max(found, key=lambda stored: stored["revision"], default=None)
        wishes = [
            wish
            for wish, place in sorted(self.wishes.items(), key=lambda item: (item[0] != "default", item[0]))
            if same(self.transcripts[place]["transcript"]["track"], track)
        ]
        return {
            "video": self.video,
            "track": track,
            "wishes": wishes,
            "revision": newest and newest["revision"],
            "stored_at": newest and newest["stored_at"],
        }


class OwnArchive:
    """Everything in dictionaries, behind one lock."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.shelves: dict[tuple[str, str], Shelf] = {}
        self.leases: dict[tuple, tuple[str, int]] = {}
        self.links: dict[str, dict] = {}
        self.changed = 0

    def shelf(self, video: dict) -> Shelf:
        return self.shelves.setdefault(key(video), Shelf(video))

    def find(self, video: dict, wish: str, now: int) -> Any:
        with self.lock:
            shelf = self.shelf(video)
            if shelf.withdrawn:
                return "withdrawn"
            if stored := shelf.stored(wish):
                return {"transcript": copy.deepcopy(stored)}
            absence = shelf.absences.get(wish)
            return {"absent": absence} if absence and absence["until"] > now else "nothing"

    def tracks(self, video: dict) -> list:
        with self.lock:
            shelf = self.shelf(video)
            return [] if shelf.withdrawn else [copy.deepcopy(shelf.archived(track)) for track in shelf.tracks]

    def keep(self, keep: dict) -> dict:
        if not keep["wishes"] or not keep["transcript"]["segments"]:
            raise verbatim.InvalidInput("a transcript has segments, and answers at least one wish")
        if keep["transcript"]["video"] != keep["video"]:
            raise verbatim.InvalidInput("the transcript is of another video")
        digest = content_digest(keep["transcript"])
        with self.lock:
            shelf = self.shelf(keep["video"])
            if shelf.withdrawn:
                raise verbatim.Conflict("the video is withdrawn")
            before = dict(shelf.wishes)
            shelf.keep(keep, digest)
            self.changed += bool(before) and before != shelf.wishes
            return copy.deepcopy(shelf.stored(keep["wishes"][0]))

    def keep_absence(self, absence: dict) -> None:
        with self.lock:
            self.shelf(absence["video"]).absences[absence["wish"]] = absence

    def claim(self, lease: dict) -> Any:
        with self.lock:
            name = (key(lease["video"]), lease["wish"])
            holder, until = self.leases.get(name, ("", 0))
            if holder == lease["holder"]:
                lease["until"] = max(lease["until"], until)
            elif until > lease["now"]:
                return {"busy": {"until": until}}
            self.leases[name] = (lease["holder"], lease["until"])
            return "claimed"

    def unclaim(self, video: dict, wish: str, holder: str) -> None:
        with self.lock:
            name = (key(video), wish)
            if self.leases.get(name, ("", 0))[0] == holder:
                del self.leases[name]

    def link(self, link: dict) -> dict | None:
        with self.lock:
            return self.links.get(link["address"])

    def keep_link(self, link: dict, video: dict) -> None:
        with self.lock:
            self.links.setdefault(link["address"], video)

    def withdraw(self, video: dict, withdrawn: bool, now: int) -> None:
        with self.lock:
            self.shelf(video).withdrawn = withdrawn
            self.changed += 1

    def forget(self, video: dict) -> None:
        with self.lock:
            withdrawn = self.shelf(video).withdrawn
            self.shelves[key(video)] = Shelf(video)
            self.shelves[key(video)].withdrawn = withdrawn
            self.changed += 1

    def changes(self) -> int:
        with self.lock:
            return self.changed

    def page(self, page: dict) -> dict:
        with self.lock:
            tracks = [
                ("/".join((*name, f"{place:06}")), copy.deepcopy(shelf.archived(track)))
                for name, shelf in sorted(self.shelves.items())
                for place, track in enumerate(shelf.tracks)
            ]
        return paged([(name, track) for name, track in tracks if track["revision"] is not None], page)

    def withdrawn(self, page: dict) -> dict:
        with self.lock:
            videos = [(f"{s.video['platform']}/{s.video['id']}", s.video) for s in self.shelves.values() if s.withdrawn]
        return paged(sorted(videos, key=lambda item: item[0]), page)

    def stats(self) -> dict:
        with self.lock:
            shelves = self.shelves.values()
            stored = [found for shelf in shelves for found in shelf.transcripts]
            return {
                "videos": sum(bool(shelf.transcripts) for shelf in shelves),
                "transcripts": len(stored),
                "absences": sum(len(shelf.absences) for shelf in shelves),
                "withdrawn": sum(shelf.withdrawn for shelf in shelves),
                "links": len(self.links),
                "bytes": sum(len(s["text"]) + 16 for found in stored for s in found["transcript"]["segments"]),
            }


def paged(items: list[tuple[str, Any]], page: dict) -> dict:
    """One page of named items, which are in order."""
    size = min(max(page["limit"], 1), 1000)
    rest = [item for item in items if page["after"] is None or item[0] > page["after"]]
    return {"items": [item for _, item in rest[:size]], "next": rest[size - 1][0] if len(rest) > size else None}
