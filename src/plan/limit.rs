//! What else would fail the same way.

use crate::cloud::Limit;
use crate::model::account::AccountId;
use crate::model::offer::Offer;

/// Whether the failure that `account` met with this limit would meet `offer` too.
pub fn covers(limit: &Limit, account: &AccountId, offer: &Offer) -> bool {
    fn same<T: PartialEq>(limit: &Option<T>, has: Option<&T>) -> bool {
        limit.as_ref().is_none_or(|limit| has == Some(limit))
    }
    offer.account == *account
        && same(&limit.region, offer.region.as_ref())
        && same(&limit.zone, offer.zone.as_ref())
        && same(&limit.gpu, offer.gpu.as_ref())
        && same(&limit.secure, Some(&offer.secure))
        && same(&limit.instance_type, Some(&offer.instance_type))
        && same(&limit.spot, Some(&offer.spot))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::filter::samples;

    #[test]
    fn each_part_narrows() {
        let offer = samples::offer("EU-RO-1", 1);
        let account = offer.account.clone();
        assert!(covers(&Limit::default(), &account, &offer));
        assert!(!covers(&Limit::default(), &"runpod/lab".parse().unwrap(), &offer));
        let gpu = |name: &str| Limit { gpu: Some(name.to_owned()), ..Limit::default() };
        assert!(covers(&gpu("RTX4090"), &account, &offer) && !covers(&gpu("H100"), &account, &offer));
        let zone =
            |name: &str| Limit { zone: Some(name.to_owned()), secure: Some(false), ..Limit::default() };
        assert!(covers(&zone("EU-RO-1"), &account, &offer) && !covers(&zone("EU-SE-1"), &account, &offer));
        assert!(!covers(&Limit { secure: Some(true), ..Limit::default() }, &account, &offer));
        assert!(!covers(&Limit { spot: Some(true), ..Limit::default() }, &account, &offer));
    }
}
