//! What is done to Google Cloud from outside its API. `control.rs` has the same over the control path.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::GcpCloud;
use super::account::{Account, GcpPolicy, Network};
use super::auth::issuer;
use super::left::GcpLeft;
use super::prices::{GcpPrices, GcpSource};
use super::seed::GcpSeed;
use crate::sandbox::faults::Fault;
use crate::sandbox::oidc::{OidcFlaw, RsaKey};
use crate::sandbox::plug::Plug;
use crate::sandbox::server::Emulator;
use crate::sandbox::{Shared, lock};

/// Google Cloud in a [`Sandbox`](crate::sandbox::Sandbox), as [`Sandbox::gcp`](crate::sandbox::Sandbox::gcp) returns it.
///
/// An account is a project with one service account; it is named by the project or its label.
#[derive(Debug)]
pub struct Gcp {
    shared: Arc<Shared>,
    cloud: Arc<GcpCloud>,
    plug: Plug,
    project: String,
    foreign: String,
    secret: std::sync::OnceLock<String>,
    /// What was there of somebody else's, from the start and since.
    theirs: std::sync::Mutex<Vec<GcpLeft>>,
}

impl Gcp {
    /// Serves it, with one project that holds an instance and its disk of somebody else's, and the usual firewall rules.
    pub(in crate::sandbox) async fn start(shared: Arc<Shared>) -> io::Result<Gcp> {
        let cloud = Arc::new(GcpCloud::new(Arc::clone(&shared))?);
        let label = lock(&cloud.state).add_account(shared.clock.now());
        let project = cloud.project_of(&label);
        let foreign = cloud.put(&project, &GcpSeed::foreign("jupyter-team"))?;
        let plug = Plug::start(cloud.clone(), Arc::clone(&shared)).await?;
        let theirs = std::sync::Mutex::new(cloud.left(true));
        Ok(Gcp { shared, cloud, plug, project, foreign, secret: std::sync::OnceLock::new(), theirs })
    }

    /// For what all clouds have.
    pub(in crate::sandbox) fn emulator(&self) -> Arc<dyn Emulator> {
        self.cloud.clone()
    }

    /// Scheme, address and port; paths begin with `/compute/v1`, `/sts`, `/iamcredentials`, `/oauth2` or `/prices`.
    pub fn endpoint(&self) -> String {
        self.plug.endpoint()
    }

    /// Id of the first project, another one at every start.
    pub fn project(&self) -> &str {
        &self.project
    }

    /// Key file of the first project's service account, as JSON. The first call in a process makes an RSA key, which takes
    /// a moment; empty where `ssh-keygen` cannot be run.
    pub fn key_file(&self) -> String {
        self.key_file_of(&self.project)
    }

    /// Key file of a project's service account, as JSON; empty when there is no such project.
    pub fn key_file_of(&self, account: &str) -> String {
        self.try_key_file(account).unwrap_or_default()
    }

    /// The same, with its errors.
    ///
    /// # Errors
    ///
    /// When there is no such project, or `ssh-keygen` cannot be run.
    pub fn try_key_file(&self, account: &str) -> io::Result<String> {
        let key = RsaKey::shared()?;
        let file = self.cloud.with_account(account, |owner| {
            let file = json!({
                "type": "service_account", "project_id": owner.project, "private_key_id": owner.key_id,
                "private_key": key.pem(), "client_email": owner.email, "client_id": owner.client_id,
                "auth_uri": "https://accounts.google.com/o/oauth2/auth",
                "token_uri": format!("{}/oauth2/token", self.endpoint()),
                "auth_provider_x509_cert_url": "https://www.googleapis.com/oauth2/v1/certs",
                "client_x509_cert_url": format!("https://www.googleapis.com/robot/v1/metadata/x509/{}", owner.email.replace('@', "%40")),
                "universe_domain": "googleapis.com",
            });
            format!("{file:#}\n")
        });
        file.ok_or_else(|| io::Error::other("no such project"))
    }

    /// One line of the private key inside of the key files: what must be in no output.
    pub fn secret(&self) -> &str {
        self.secret.get_or_init(|| {
            // The first lines are the public half.
            let line = RsaKey::shared().ok().and_then(|key| key.pem().lines().nth(10).map(str::to_owned));
            line.unwrap_or_else(|| "no key".to_owned())
        })
    }

    /// A key file whose key was deleted: Google knows it no more.
    pub fn deleted_key_file(&self) -> String {
        let unknown = "0".repeat(40);
        let file = self.key_file();
        let known = self.cloud.with_account(&self.project, |owner| owner.key_id.clone()).unwrap_or_default();
        file.replace(&known, &unknown)
    }

    /// An `external_account` file that reads the outside token from a file and impersonates the first project's service account.
    pub fn federation_file(&self, token_path: &str) -> String {
        self.federation(&json!({"file": token_path, "format": {"type": "text"}}))
    }

    /// The same with any `credential_source`.
    pub fn federation(&self, source: &Value) -> String {
        let (base, email) = (self.endpoint(), self.service_account());
        let file = json!({
            "type": "external_account", "audience": self.audience(),
            "subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "token_url": format!("{base}/sts/v1/token"),
            "service_account_impersonation_url":
                format!("{base}/iamcredentials/v1/projects/-/serviceAccounts/{email}:generateAccessToken"),
            "credential_source": source,
        });
        format!("{file:#}\n")
    }

    /// E-mail of the first project's service account.
    pub fn service_account(&self) -> String {
        self.cloud.with_account(&self.project, |owner| owner.email.clone()).unwrap_or_default()
    }

    /// Resource name of the first project's workload identity provider, with `//iam.googleapis.com/` before it.
    pub fn audience(&self) -> String {
        self.cloud.with_account(&self.project, |owner| owner.audience()).unwrap_or_default()
    }

    /// A token of the outside issuer that the first project trusts; right, or with one flaw.
    ///
    /// # Errors
    ///
    /// When `ssh-keygen` cannot be run.
    pub fn oidc_token(&self, flaw: Option<OidcFlaw>) -> io::Result<String> {
        issuer(&self.audience()).token(flaw)
    }

    /// Opens another project with nothing in it but the usual network, and returns its id.
    pub fn add_account(&self) -> String {
        let now = self.shared.clock.now();
        let mut state = lock(&self.cloud.state);
        let label = state.add_account(now);
        let project = state.project(&label);
        drop(state);
        self.remember();
        project
    }

    /// The label of an account, as the ledger and the records have it.
    pub fn account(&self, account: &str) -> Option<String> {
        self.cloud.with_account(account, |owner| owner.label.clone())
    }

    /// Replaces a quota; without a region it is one of the whole project, such as `GPUS_ALL_REGIONS`.
    pub fn set_quota(&self, account: &str, region: Option<&str>, metric: &str, limit: f64) {
        let key = (region.unwrap_or_default().to_owned(), metric.to_owned());
        self.cloud.with_account(account, |owner| owner.limits.insert(key, limit));
    }

    /// Takes permissions away, such as `compute.firewalls.create`.
    pub fn deny(&self, account: &str, permissions: &[&str]) {
        self.cloud.with_account(account, |owner| {
            owner.denied.extend(permissions.iter().map(|permission| (*permission).to_owned()));
        });
    }

    /// Gives all permissions back.
    pub fn allow_all(&self, account: &str) {
        self.cloud.with_account(account, |owner| owner.denied.clear());
    }

    /// Puts the project under a policy of the organisation, or takes it from there.
    pub fn set_policy(&self, account: &str, policy: GcpPolicy, on: bool) {
        self.cloud.with_account(account, |owner| {
            if on { owner.policies.insert(policy) } else { owner.policies.remove(&policy) }
        });
    }

    /// Sets metadata of the whole project, such as `enable-oslogin`; empty text takes it away.
    pub fn set_project_metadata(&self, account: &str, key: &str, value: &str) {
        self.cloud.with_account(account, |owner| {
            if value.is_empty() {
                owner.metadata.remove(key)
            } else {
                owner.metadata.insert(key.to_owned(), value.to_owned())
            }
        });
    }

    /// Removes a network with its firewall rules, as in organisations that make no default one.
    pub fn remove_network(&self, account: &str, name: &str) {
        self.cloud.with_account(account, |owner| owner.networks.retain(|network| network.name != name));
        let label = self.account(account).unwrap_or_default();
        let suffix = format!("/{name}");
        lock(&self.cloud.state).rules.retain(|rule| {
            let network = rule.body.get("network").and_then(Value::as_str).unwrap_or_default();
            rule.account != label || !network.ends_with(&suffix)
        });
    }

    /// Adds a network in custom mode, with one subnetwork in a region.
    pub fn add_custom_network(&self, account: &str, name: &str, region: &str, subnetwork: &str) {
        let id = lock(&self.cloud.state).id();
        let network = Network {
            id,
            name: name.to_owned(),
            auto: false,
            subnetworks: vec![(region.to_owned(), subnetwork.to_owned())],
        };
        self.cloud.with_account(account, |owner| owner.networks.push(network));
    }

    /// Removes a firewall rule, such as `default-allow-ssh`. False when there is none.
    pub fn remove_rule(&self, account: &str, name: &str) -> bool {
        let label = self.account(account).unwrap_or_default();
        let mut state = lock(&self.cloud.state);
        let found = state.rule(&label, name);
        found.inspect(|index| drop(state.rules.remove(*index))).is_some()
    }

    /// Switches the Compute Engine API on or off.
    pub fn set_api(&self, account: &str, on: bool) {
        self.cloud.with_account(account, |owner| owner.api_off = !on);
    }

    /// Gives the project a billing account or takes it away.
    pub fn set_billing(&self, account: &str, on: bool) {
        self.cloud.with_account(account, |owner| owner.billing_off = !on);
    }

    /// Deletes the key of the project's service account, as in the web console.
    pub fn delete_key(&self, account: &str) {
        self.cloud.with_account(account, |owner| owner.key_deleted = true);
    }

    /// Retires an image family: it is 404 from now on.
    pub fn retire_family(&self, family: &str) {
        lock(&self.cloud.retired).push(family.to_owned());
    }

    /// How a price catalogue answers from now on.
    pub fn set_prices(&self, source: GcpSource, how: GcpPrices) {
        self.cloud.set_prices(source, how);
    }

    /// How long new tokens live that are exchanged. What is told to the client is at least a second.
    pub fn set_token_life(&self, life: Duration) {
        lock(&self.cloud.state).token_life = life;
    }

    /// Ends every token that was exchanged, as if it had expired.
    pub fn expire_tokens(&self) {
        lock(&self.cloud.state).tokens.iter_mut().for_each(|token| token.expires = Duration::ZERO);
    }

    /// Takes Google Cloud off the network: its port refuses connections, its machines go on.
    pub fn unplug(&self) {
        self.plug.unplug();
    }

    /// Puts it back on the port it had.
    ///
    /// # Errors
    ///
    /// When the port is taken by now.
    pub async fn plug(&self) -> io::Result<()> {
        self.plug.plug().await
    }

    /// Sets one more fault, for calls to Google Cloud only.
    pub fn add_fault(&self, fault: Fault) {
        self.shared.faults.add(fault.cloud("gcp"));
    }

    /// Everything that still exists, by kind: instances, disks, firewall rules, operations that run. What is somebody else's is
    /// not in it.
    pub fn left(&self) -> Vec<GcpLeft> {
        self.cloud.left(false)
    }

    /// What was somebody else's and is there no more, or not as it was. Must stay empty.
    pub fn harmed(&self) -> Vec<GcpLeft> {
        let now = self.cloud.left(true);
        lock(&self.theirs).iter().filter(|one| !now.contains(one)).cloned().collect()
    }

    /// The foreign instance that was there from the start.
    pub fn foreign_instance(&self) -> &str {
        &self.foreign
    }

    /// Puts an instance, with its boot disk, into a project as if another computer had made it. Returns its id.
    ///
    /// # Errors
    ///
    /// When there is no such account or machine type in the zone, or its machine cannot be made.
    pub fn add_instance(&self, account: &str, seed: &GcpSeed) -> io::Result<String> {
        let _inside = self.shared.runtime.enter();
        let id = self.cloud.put(account, seed)?;
        self.remember();
        Ok(id)
    }

    fn remember(&self) {
        let mut theirs = lock(&self.theirs);
        for one in self.cloud.left(true) {
            if !theirs.contains(&one) {
                theirs.push(one);
            }
        }
    }

    /// Removes an instance and its boot disk as if in the web console. False when there is none with this id.
    pub fn remove_instance(&self, id: &str) -> bool {
        self.cloud.remove(id)
    }

    /// Preempts a spot instance. False when there is none with this id.
    pub fn preempt(&self, id: &str) -> bool {
        self.cloud.preempt(id)
    }
}

impl GcpCloud {
    /// Changes or reads the account with this project or label.
    pub(super) fn with_account<T>(&self, name: &str, work: impl FnOnce(&mut Account) -> T) -> Option<T> {
        let mut state = lock(&self.state);
        state.account_mut(name).map(work)
    }

    /// How a price catalogue answers from now on.
    pub(super) fn set_prices(&self, source: GcpSource, how: GcpPrices) {
        lock(&self.sources).insert(source, how);
    }

    /// Preempts a spot instance.
    pub(super) fn preempt(&self, id: &str) -> bool {
        let mut state = lock(&self.state);
        let found = state
            .instances
            .iter()
            .position(|one| one.id == id && !one.gone && one.going.is_none() && one.spot);
        found.inspect(|index| state.preempt(&self.shared, *index)).is_some()
    }

    /// Removes an instance with its disk.
    pub(super) fn remove(&self, id: &str) -> bool {
        let mut state = lock(&self.state);
        let found = state.instances.iter().position(|one| one.id == id && !one.gone);
        found.inspect(|index| state.end(&self.shared, *index, false)).is_some()
    }
}
