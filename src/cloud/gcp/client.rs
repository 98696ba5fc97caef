//! One function for each call of the API (discovery document of the Compute Engine API v1).

use std::fmt;
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_LENGTH};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::credentials::exchange;
use super::credentials::{Credentials, key};
use super::errors::{Asked, Attempt, is_missing, refused, unreadable};
use super::names::{is_name, is_zone};
use super::verdicts::Operation;
use super::wire::{Disk, Firewall, GuestAttributes, Image, Instance, told};
use super::{CREATE_TIMEOUT, Settings};
use crate::cloud::lenient::object;
use crate::cloud::{Error, ErrorKind, Reached, Result, Setup};
use crate::http::address::{query, segment};
use crate::http::token::{Granted, Tokens};
use crate::http::{Answer, Client, Method, Request, Retry};
use crate::model::account::AccountId;
use crate::model::secret::Secret;
use crate::model::words::one_line;

/// What a look is called in messages.
pub(super) const LOOKING: &str = "looking at the machine";

/// What a create is called in messages.
pub(super) const CREATING: &str = "creating the machine";

/// What a delete is called in messages.
pub(super) const DELETING: &str = "deleting the machine";

/// How long the create may take with waiting for the rate window.
const CREATE_WITHIN: Duration = CREATE_TIMEOUT.saturating_add(Duration::from_secs(31));

/// How often a read that is refused for its rate is tried again, and after how long at first. Google says so with a 403, which
/// the client below does not take for one.
const RATE_TRIES: u32 = 3;
const RATE_PAUSE: Duration = Duration::from_millis(500);

/// The API with the account's credentials.
pub(super) struct Api {
    http: Client,
    account: AccountId,
    base: String,
    project: String,
    network: String,
    pace: String,
    credentials: Credentials,
    tokens: Tokens,
    timeout: Duration,
}

/// The secret stays out.
impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api")
            .field("account", &self.account)
            .field("base", &self.base)
            .field("project", &self.project)
            .finish_non_exhaustive()
    }
}

impl Api {
    /// Returns the API for an account. No request.
    pub(super) fn new(setup: &Setup, settings: &Settings, http: Client) -> Self {
        let pace = format!("gcp {} {}", setup.endpoint, setup.secret_mark);
        Api {
            http,
            account: setup.account.clone(),
            base: format!("{}/compute/v1", setup.endpoint),
            project: settings.project.clone(),
            network: settings.network.clone(),
            tokens: Tokens::new(
                setup.cache.as_ref().map(|cache| cache.join("tokens")).as_deref(),
                pace.clone(),
            ),
            pace,
            credentials: settings.credentials.clone(),
            timeout: setup.timeout,
        }
    }

    /// Returns the circumstances of a request, for its errors.
    pub(super) fn asked(&self, doing: &'static str) -> Asked<'_> {
        Asked { account: &self.account, doing, project: &self.project, network: &self.network, attempt: None }
    }

    /// Returns the path of something in the account's project, from `regions/us-central1` for example; the project itself for
    /// an empty one, or for a query alone.
    pub(super) fn in_project(&self, path: &str) -> String {
        let project = segment(&self.project);
        match path.is_empty() || path.starts_with('?') {
            true => format!("/projects/{project}{path}"),
            false => format!("/projects/{project}/{path}"),
        }
    }

    /// Returns the whole address of something in the account's project.
    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{}", self.base, self.in_project(path))
    }

    /// Reads something in the account's project (`path` as for [`Api::in_project`], with a query if need be); none if Google
    /// says that it does not exist.
    pub(super) async fn get_json<T: DeserializeOwned>(
        &self,
        path: &str,
        doing: &'static str,
    ) -> Result<Option<T>> {
        self.get_at(&self.in_project(path), doing).await
    }

    /// Sends a question with a body to something in the account's project. It changes nothing there.
    pub(super) async fn ask_json<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &Value,
        doing: &'static str,
    ) -> Result<T> {
        let asked = self.asked(doing);
        let path = self.in_project(path);
        let answer =
            self.send(&asked, || self.request(Method::POST, &path).retry(Retry::Safe).json(body)).await?;
        read(&answer, &asked)
    }

    async fn get_at<T: DeserializeOwned>(&self, path: &str, doing: &'static str) -> Result<Option<T>> {
        let asked = self.asked(doing);
        let answer = self.send(&asked, || self.request(Method::GET, path)).await?;
        let bare = path.split('?').next().unwrap_or(path);
        let tail = bare.rfind('/').map_or(bare, |at| &bare[at..]);
        if is_missing(&answer, tail) {
            return Ok(None);
        }
        let value: Value = read(&answer, &asked)?;
        object(value).map(Some).ok_or_else(|| unreadable(&asked, "it is no object", Reached::No))
    }

    /// Asks for the newest image of a family; none if there is no such family.
    pub(super) async fn image_of_family(&self, project: &str, family: &str) -> Result<Option<Image>> {
        let path = format!("/projects/{}/global/images/family/{}", segment(project), segment(family));
        self.get_at(&path, "looking for the image").await
    }

    /// Sends the create of a machine and returns the answer as it is. The same request id is the same create.
    pub(super) async fn insert(
        &self,
        zone: &str,
        request_id: &str,
        body: &Value,
        attempt: &Attempt,
    ) -> Result<Answer> {
        let asked = self.asked(CREATING).of(attempt);
        let pairs = query([("requestId", request_id)]);
        let path = self.in_project(&format!("zones/{}/instances?{pairs}", segment(zone)));
        let token = self.token(&asked).await?;
        // Not again after a 401: another token is no reason to buy twice.
        self.request(Method::POST, &path)
            .bearer(&token)
            .json(body)
            .retry(Retry::Create)
            .within(CREATE_WITHIN)
            .each(CREATE_TIMEOUT)
            .send()
            .await
            .map_err(|error| Error::unanswered(error, &self.account, CREATING))
    }

    /// Asks for a machine by its name; none if there is none of that name.
    pub(super) async fn instance(
        &self,
        zone: &str,
        name: &str,
        doing: &'static str,
    ) -> Result<Option<Instance>> {
        let path = self.thing(zone, "instances", name, doing)?;
        self.get_json(&path, doing).await
    }

    /// Asks for a disk by its name.
    pub(super) async fn disk(&self, zone: &str, name: &str, doing: &'static str) -> Result<Option<Disk>> {
        let path = self.thing(zone, "disks", name, doing)?;
        self.get_json(&path, doing).await
    }

    /// Asks for a firewall rule by its name.
    pub(super) async fn firewall(&self, name: &str, doing: &'static str) -> Result<Option<Firewall>> {
        self.name(name, doing)?;
        self.get_json(&format!("global/firewalls/{}", segment(name)), doing).await
    }

    /// Sends a delete and returns the operation; none if there is nothing of that path.
    pub(super) async fn delete(
        &self,
        path: &str,
        request_id: &str,
        doing: &'static str,
    ) -> Result<Option<Operation>> {
        let asked = self.asked(doing);
        let whole = self.in_project(&format!("{path}?{}", query([("requestId", request_id)])));
        let answer = self.send(&asked, || self.request(Method::DELETE, &whole)).await?;
        let tail = path.rfind('/').map_or(path, |at| &path[at..]);
        if is_missing(&answer, tail) {
            return Ok(None);
        }
        operation(&answer, &asked).map(Some)
    }

    /// Sends the create of a firewall rule.
    pub(super) async fn insert_firewall(&self, request_id: &str, body: &Value) -> Result<Operation> {
        const OPENING: &str = "opening ports";
        let asked = self.asked(OPENING);
        let path = self.in_project(&format!("global/firewalls?{}", query([("requestId", request_id)])));
        // With the same id it is the same rule, however often it is sent.
        let answer =
            self.send(&asked, || self.request(Method::POST, &path).retry(Retry::Safe).json(body)).await?;
        operation(&answer, &asked)
    }

    /// Waits for an operation, at most so long; the operation as it then is. None if Google does not know it (any more), or
    /// has not answered by then.
    pub(super) async fn wait(
        &self,
        zone: Option<&str>,
        name: &str,
        most: Duration,
        doing: &'static str,
    ) -> Result<Waited> {
        self.name(name, doing)?;
        let scope = zone.map_or_else(|| "global".to_owned(), |zone| format!("zones/{}", segment(zone)));
        let path = self.in_project(&format!("{scope}/operations/{}/wait", segment(name)));
        let asked = self.asked(doing);
        // Without a length Google's edge answers 411 (github.com/googleworkspace/cli/issues/183).
        let request = || {
            let request = self.request(Method::POST, &path).retry(Retry::Safe);
            request.header(CONTENT_LENGTH, "0").within(most.min(self.timeout))
        };
        let answer = match self.send(&asked, request).await {
            Ok(answer) => answer,
            // It waits as long as it takes, up to two minutes.
            Err(error) if error.kind == ErrorKind::Timeout => return Ok(Waited::Running),
            Err(error) => return Err(error),
        };
        if is_missing(&answer, &format!("/{name}")) {
            return Ok(Waited::Unknown);
        }
        let found = operation(&answer, &asked)?;
        Ok(if found.is_done() { Waited::Done(Box::new(found)) } else { Waited::Running })
    }

    /// Lists operations of a zone that a filter lets through.
    pub(super) async fn operations(
        &self,
        zone: &str,
        filter: &str,
        doing: &'static str,
    ) -> Result<Vec<Operation>> {
        let path = format!("zones/{}/operations", segment(zone));
        let listed = self.list(&path, filter, "operations", doing).await?;
        Ok(crate::cloud::lenient::each(listed))
    }

    /// Asks for the host keys that a machine publishes; none yet.
    pub(super) async fn host_keys(&self, zone: &str, name: &str) -> Result<Option<GuestAttributes>> {
        let path = self.thing(zone, "instances", name, LOOKING)?;
        let path = format!("{path}/getGuestAttributes?{}", query([("queryPath", "hostkeys/")]));
        self.get_json(&path, LOOKING).await
    }

    /// Returns the path of something in a zone, names checked.
    fn thing(&self, zone: &str, kind: &str, name: &str, doing: &'static str) -> Result<String> {
        self.name(name, doing)?;
        if !is_zone(zone) {
            return Err(self.asked(doing).error(
                ErrorKind::NotFound,
                format!("`{}` is no zone", one_line(zone, 60)),
                Reached::No,
            ));
        }
        Ok(format!("zones/{}/{kind}/{}", segment(zone), segment(name)))
    }

    fn name(&self, name: &str, doing: &'static str) -> Result<()> {
        if is_name(name) {
            return Ok(());
        }
        let message = format!("`{}` is no name of Google's", one_line(name, 60));
        Err(self.asked(doing).error(ErrorKind::NotFound, message, Reached::No))
    }

    pub(super) fn request(&self, method: Method, path: &str) -> Request {
        self.http
            .request(method, format!("{}{path}", self.base))
            .header(ACCEPT, "application/json")
            .within(self.timeout)
            .paced(&self.http.pacer(&self.pace))
    }

    /// Sends a request that may be repeated: once more with a new token when this one is not taken, again after a pause when
    /// there were too many.
    pub(super) async fn send(&self, asked: &Asked<'_>, request: impl Fn() -> Request) -> Result<Answer> {
        let once = async |token: &Secret| {
            let answer = request().bearer(token).send().await;
            answer.map_err(|error| Error::unanswered(error, &self.account, asked.doing))
        };
        let mut token = self.token(asked).await?;
        let mut renewed = false;
        let mut tries = 0;
        loop {
            let answer = once(&token).await?;
            if answer.status == 401 && !renewed {
                self.tokens.reject(&token).await;
                token = self.token(asked).await?;
                renewed = true;
                continue;
            }
            let crowded = answer.status == 403 && refused(&answer, asked).kind == ErrorKind::RateLimited;
            if !crowded || tries >= RATE_TRIES {
                return Ok(answer);
            }
            tokio::time::sleep(RATE_PAUSE * 2_u32.pow(tries)).await;
            tries += 1;
        }
    }

    async fn token(&self, asked: &Asked<'_>) -> Result<Secret> {
        self.tokens.get(|| self.grant(asked)).await
    }

    async fn grant(&self, asked: &Asked<'_>) -> Result<Granted> {
        match &self.credentials {
            Credentials::Key(key) => key::grant(key, self.http.clock_ahead())
                .map_err(|error| asked.error(ErrorKind::Auth, error.to_string(), Reached::No)),
            Credentials::Federated(external) => {
                exchange::grant(external, &self.http, self.timeout, asked).await
            }
        }
    }
}

/// What became of an operation that was waited for.
#[derive(Debug)]
pub(super) enum Waited {
    /// It has ended, well or not.
    Done(Box<Operation>),
    /// It has not, or nobody said so in time.
    Running,
    /// Google does not know it.
    Unknown,
}

/// Reads the operation that a change is answered with.
pub(super) fn operation(answer: &Answer, asked: &Asked<'_>) -> Result<Operation> {
    let value: Value = read_changed(answer, asked)?;
    let operation: Option<Operation> = object(value);
    operation
        .filter(|operation| told(operation.name.as_ref()).is_some_and(is_name))
        .ok_or_else(|| unreadable(asked, "it holds no operation", Reached::Yes))
}

/// Reads a good answer to a question, or says what the bad one means.
pub(super) fn read<T: DeserializeOwned>(answer: &Answer, asked: &Asked<'_>) -> Result<T> {
    read_as(answer, asked, Reached::No)
}

/// The same for a change: what cannot be read may have been done.
fn read_changed<T: DeserializeOwned>(answer: &Answer, asked: &Asked<'_>) -> Result<T> {
    read_as(answer, asked, Reached::Yes)
}

fn read_as<T: DeserializeOwned>(answer: &Answer, asked: &Asked<'_>, reached: Reached) -> Result<T> {
    if !answer.is_success() {
        return Err(refused(answer, asked));
    }
    answer.json().map_err(|error| {
        // Only the place: the text of the error could quote the body.
        let what = format!("no such JSON as expected (line {}, column {})", error.line(), error.column());
        unreadable(asked, &what, reached)
    })
}
