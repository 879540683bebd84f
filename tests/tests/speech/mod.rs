//! Speech-to-text: real speech through a real recognizer, and faulty services and files.

mod cancellation;
mod cli;
mod faults;
mod fixture;
mod languages;
mod parts;
mod playlists;
mod recogniser;
mod recognition;
mod sounds;
mod waiting;
mod youtube;
mod ytdlp_fallback;
