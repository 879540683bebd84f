//! All acceptance tests, as one program: one link, and one place to see what holds.

mod browser;
mod chat;
mod instagram;
mod links;
mod mcp;
mod payments;
mod replay;
mod scenarios;
mod server;
mod service;
mod simulation;
mod social;
mod speech;
mod stripe;
mod tidy;
mod tiktok;
mod x;
mod youtube;
mod ytdlp;
