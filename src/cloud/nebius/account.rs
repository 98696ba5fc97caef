//! The account as the rest of gpuprov sees it: each method delegates.

use async_trait::async_trait;

use super::Nebius;
use super::{check, create, delete, find, inspect, offers, recheck};
use crate::cloud::{
    Capabilities, Cloud, Created, Deletion, Found, Identity, Journal, Look, OfferBatch, Preview, Recheck,
    Result, Which,
};
use crate::model::account::AccountId;
use crate::model::handle::Handle;
use crate::model::mark::Mark;
use crate::model::offer::Offer;
use crate::model::offer_key::OfferKey;
use crate::model::spec::MachineSpec;
use crate::model::want::Want;

#[async_trait]
impl Cloud for Nebius {
    fn account(&self) -> &AccountId {
        &self.setup.account
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn is_roomy(&self) -> bool {
        // No limits are published, and there is no quicker pace that they would have to leave room for.
        true
    }

    fn identity(&self) -> Identity {
        self.known_identity()
    }

    async fn check(&self) -> Result<Identity> {
        check::check(self).await
    }

    async fn offers(&self, want: &Want) -> Result<OfferBatch> {
        offers::offers(self, want).await
    }

    async fn recheck(&self, key: &OfferKey, _want: &Want) -> Result<Recheck> {
        recheck::recheck(self, key).await
    }

    async fn create(
        &self,
        offer: &Offer,
        spec: &MachineSpec,
        mark: &Mark,
        journal: &dyn Journal,
    ) -> Result<Created> {
        create::create(self, offer, spec, mark, journal).await
    }

    fn preview(&self, offer: &Offer, spec: &MachineSpec, mark: &Mark) -> Preview {
        create::preview(self, offer, spec, mark)
    }

    async fn inspect(&self, handle: &Handle) -> Result<Look> {
        inspect::inspect(self, handle).await
    }

    async fn find(&self, which: &Which) -> Result<Vec<Found>> {
        find::find(self, which).await
    }

    async fn delete(&self, handle: &Handle) -> Result<Deletion> {
        delete::delete(self, handle).await
    }
}
