//! All acceptance tests as one program, which links once.

mod browser;
mod chat;
mod instagram;
mod install;
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
