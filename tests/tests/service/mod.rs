//! One Verbatim server asked by another program: the typed client, and a server as the source of another one, over
//! real HTTP; and servers that are not what they should be.

mod accounts;
mod chain;
mod circle;
mod example;
mod fake;
mod faults;
mod lookups;
mod stage;
