//! Our controller where Sealed Secrets was: under the rights and the definition that its chart installs, after and
//! before its own controller, and through faults of the cluster.

mod both_ways;
mod faults;
mod moving;
mod rights;
mod site;
mod suite;
mod templates;
mod token;
