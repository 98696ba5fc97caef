//! Asking again for one offer.

use super::Gcp;
use crate::cloud::{Recheck, Result};
use crate::model::offer_key::OfferKey;
use crate::model::want::Want;

/// Asks again for the offer that `key` names.
pub(super) async fn recheck(_cloud: &Gcp, _key: &OfferKey, _want: &Want) -> Result<Recheck> {
    Ok(Recheck::Gone("offers of Google are not listed yet".to_owned()))
}
