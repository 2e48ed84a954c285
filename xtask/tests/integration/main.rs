//! The real components start, do what they are for, and leave nothing behind; and the repository keeps its own rules.

mod cluster;
mod dist;
mod programs;
mod repository;
mod sealed_secrets;
mod servers;
