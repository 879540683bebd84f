//! Listening to videos: real speech through a real recogniser, and services and files that are not what they
//! should be.

mod built;
mod faults;
mod hearing;
mod leaving;
mod parts;
mod recogniser;
mod service;
mod sounds;
mod stage;
mod youtube;
