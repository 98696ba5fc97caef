//! Offers.

use super::Gcp;
use crate::cloud::{OfferBatch, Result};
use crate::model::want::Want;

/// Lists what can be had.
pub(super) async fn offers(_cloud: &Gcp, _want: &Want) -> Result<OfferBatch> {
    Ok(OfferBatch::default())
}
