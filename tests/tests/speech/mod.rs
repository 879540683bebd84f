//! Listening to videos: real speech through a real recogniser, and services and files that are not what they
//! should be.

mod built;
mod elsewhere;
mod faults;
mod hearing;
mod leaving;
mod parts;
mod playlists;
mod recogniser;
pub(crate) mod service;
mod sounds;
mod stage;
mod waiting;
mod youtube;
