//! Who the credentials are, and what they may do as far as it can be told without doing anything.

use futures_util::future::join_all;

use super::Nebius;
use super::wire::GetProfileResponse;
use crate::cloud::{ErrorKind, Identity, Reached, Result};
use crate::model::words::one_line;

const CHECKING: &str = "checking the credentials";

/// Asks who the credentials are and whether they see machines in every project. Whether they may make any only a create
/// tells.
pub(super) async fn check(cloud: &Nebius) -> Result<Identity> {
    let asked = cloud.api.asked(CHECKING);
    let profile = cloud.api.profile().await?;
    let Some(who) = who(&profile) else {
        let mut error = asked.error(ErrorKind::Auth, "Nebius does not know who this is", Reached::No);
        error.hint =
            Some("the token is of nobody; get a new one, or use a service account's key file".to_owned());
        return Err(error);
    };
    let scope = cloud.scope().await?;
    if scope.all.is_empty() {
        let message = format!("{who} sees no project in {}", scope.tenant);
        let mut error = asked.error(ErrorKind::Forbidden, message, Reached::No);
        error.hint = Some(
            "put it into a group of the tenant that has the role editor (console.nebius.com, Administration, IAM)"
                .to_owned(),
        );
        return Err(error);
    }
    let seen = join_all(scope.projects.iter().map(|project| cloud.api.instances(&project.id))).await;
    for (project, seen) in scope.projects.iter().zip(seen) {
        seen.map_err(|mut error| {
            error.doing = CHECKING;
            error.message = format!("{who} in project {}: {}", project.id, error.message);
            error
        })?;
    }
    Ok(Identity { provider: Some(scope.tenant.clone()), ..cloud.known_identity() })
}

/// Names who it is; none for nobody. An answer of a kind that is not known yet is somebody.
fn who(profile: &GetProfileResponse) -> Option<String> {
    if let Some(user) = &profile.user_profile {
        return Some(format!("the user {}", one_line(&user.id, 60)));
    }
    if let Some(account) = &profile.service_account_profile {
        let metadata = account.info.as_ref().and_then(|info| info.metadata.as_ref());
        let id = metadata.map(|metadata| metadata.id.as_str()).unwrap_or_default();
        return Some(format!("the service account {}", one_line(id, 60)));
    }
    profile.anonymous_profile.is_none().then(|| "whoever this is".to_owned())
}
