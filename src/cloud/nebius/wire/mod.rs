//! The messages of Nebius's gRPC API, as far as they are used (github.com/nebius/api; the descriptors inside the Python package
//! `nebius` 0.6.29 know more than that repository, spot prices among it).
//!
//! The first words of each type's comment are its name in the API. A test holds every number, type and label against
//! `tests/data/nebius-wire.json`, which was taken from those descriptors. Fields that nothing here uses are left out: readers
//! of protobuf pass over what they do not know.
//!
//! Members of one-ofs are plain optional fields: on the wire it is the same, and an answer that fills two of them is survived.
//! Enums are numbers in the messages, so that a value of tomorrow is kept; the getters of the same name give the known ones.

mod common;
mod compute;
mod iam;
mod instance;
mod market;
pub(crate) mod methods;
mod service_error;
#[cfg(test)]
mod table_tests;

pub(crate) use common::*;
pub(crate) use compute::*;
pub(crate) use iam::*;
pub(crate) use instance::*;
pub(crate) use market::*;
pub(crate) use service_error::*;
