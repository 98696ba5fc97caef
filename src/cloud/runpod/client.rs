//! One function for each call of the API (docs.runpod.io/api-reference-v2).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::ACCEPT;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::CREATE_TIMEOUT;
use super::errors::{Asked, Attempt, refused, unreadable};
use super::instance::InstanceType;
use super::wire::{DataCenter, DataCenterList, GpuList, GpuType, Pagination, Pod, PodList, Problem, SshKeys};
use crate::cloud::lenient::object;
use crate::cloud::{Error, ErrorKind, Reached, Result, Setup};
use crate::http::address::{query, segment};
use crate::http::pages::{self, Page, PagesError};
use crate::http::{self, Answer, Client, Method, Pacer, Request, Retry, Stream};
use crate::model::account::AccountId;
use crate::model::secret::Secret;
use crate::model::want::Cuda;

/// Pages of the pod list that are read at most; each holds up to 1000.
const MOST_PAGES: usize = 100;

/// How long the create may take with waiting for the rate window: the try itself and half a minute of patience.
pub(super) const CREATE_WITHIN: Duration = CREATE_TIMEOUT.saturating_add(Duration::from_secs(31));

/// The API with the account's key.
pub(super) struct Api {
    http: Client,
    pacer: Arc<Pacer>,
    account: AccountId,
    base: String,
    key: Secret,
    timeout: Duration,
}

/// The key stays out.
impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api")
            .field("account", &self.account)
            .field("base", &self.base)
            .finish_non_exhaustive()
    }
}

/// A question to the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StockQuery {
    /// How many GPUs on one machine.
    pub(super) count: u32,
    /// `SECURE` or `COMMUNITY`.
    pub(super) tier: super::Tier,
    /// CUDA floor.
    pub(super) floor: Option<Cuda>,
    /// `countryCodes`, comma-joined.
    pub(super) countries: Option<String>,
}

impl StockQuery {
    fn to_text(&self) -> String {
        let (count, floor) = (self.count.to_string(), self.floor.map(|floor| floor.to_string()));
        let mut pairs = vec![
            // Without exactly one product the stock would be a blend of several.
            ("include", "AVAILABILITY"),
            ("product", "POD"),
            ("count", count.as_str()),
            ("cloud", self.tier.wire()),
        ];
        pairs.extend(floor.as_deref().map(|floor| ("minCudaVersion", floor)));
        pairs.extend(self.countries.as_deref().map(|codes| ("countryCodes", codes)));
        query(pairs)
    }
}

impl From<&InstanceType> for StockQuery {
    fn from(instance: &InstanceType) -> Self {
        StockQuery { count: instance.count, tier: instance.tier, floor: None, countries: None }
    }
}

/// Which of a pod's logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogSource {
    /// What the container prints.
    Container,
    /// What the host says about it.
    System,
}

impl Api {
    /// Returns the API for an account. No request.
    pub(super) fn new(setup: &Setup, key: Secret, http: Client) -> Self {
        let pacer = http.pacer(&format!("runpod {} {}", setup.endpoint, setup.secret_mark));
        Api {
            http,
            pacer,
            account: setup.account.clone(),
            base: setup.endpoint.clone(),
            key,
            timeout: setup.timeout,
        }
    }

    /// Whether more than half of every rate window is left.
    pub(super) fn is_roomy(&self) -> bool {
        self.pacer.is_roomy()
    }

    /// Returns how long one answer may take.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Returns the circumstances of a request, for its errors.
    pub(super) fn asked(&self, doing: &'static str) -> Asked<'_> {
        Asked { account: &self.account, doing, secrets: vec![self.key.expose()], attempt: None }
    }

    /// Returns where pods are made.
    pub(super) fn pods_url(&self) -> String {
        format!("{}/v2/pods", self.base)
    }

    /// Makes the cheapest call that needs the key.
    pub(super) async fn check(&self) -> Result<()> {
        let asked = self.asked("checking the key");
        let answer = self.get(&format!("/v2/pods?{}", query([("limit", "1")])), &asked).await?;
        if answer.is_success() { Ok(()) } else { Err(refused(&answer, &asked)) }
    }

    /// Lists the GPU types with their stock.
    pub(super) async fn gpus(&self, stock: &StockQuery, retry: Retry) -> Result<Vec<GpuType>> {
        let asked = self.asked("listing offers");
        let request = self.request(Method::GET, &format!("/v2/catalog/gpus?{}", stock.to_text()));
        let answer = self.send(request.retry(retry), &asked).await?;
        let list: GpuList = read(&answer, &asked)?;
        list.gpus.ok_or_else(|| unreadable(&asked, "the list of GPUs is missing", Reached::No))
    }

    /// Asks for one GPU type by its exact id; none if RunPod does not know it.
    pub(super) async fn gpu(&self, id: &str, stock: &StockQuery) -> Result<Option<GpuType>> {
        let asked = self.asked("checking the offer again");
        let answer =
            self.get(&format!("/v2/catalog/gpus/{}?{}", segment(id), stock.to_text()), &asked).await?;
        if is_unknown(&answer) {
            return Ok(None);
        }
        read(&answer, &asked).map(Some)
    }

    /// Lists the data centres.
    pub(super) async fn data_centers(&self) -> Result<Vec<DataCenter>> {
        let asked = self.asked("listing data centres");
        let list: DataCenterList = read(&self.get("/v2/catalog/datacenters", &asked).await?, &asked)?;
        list.data_centers
            .ok_or_else(|| unreadable(&asked, "the list of data centres is missing", Reached::No))
    }

    /// Lists the ssh keys registered on the account. The call that writes them is never made: it replaces the whole list.
    pub(super) async fn ssh_keys(&self) -> Result<Vec<String>> {
        let asked = self.asked("reading the account's ssh keys");
        let list: SshKeys = read(&self.get("/v2/account/ssh-keys", &asked).await?, &asked)?;
        list.keys.ok_or_else(|| unreadable(&asked, "the list of keys is missing", Reached::No))
    }

    /// Lists all pods, as they come, all pages, each id once (pages shift when a pod is made meanwhile).
    pub(super) async fn pods(&self) -> Result<Vec<Value>> {
        let asked = &self.asked("listing pods");
        let page = async |cursor: Option<String>| {
            let mut pairs = vec![("limit", "1000")];
            pairs.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            let answer = self.get(&format!("/v2/pods?{}", query(pairs)), asked).await?;
            let list: PodList = read(&answer, asked)?;
            let items =
                list.pods.ok_or_else(|| unreadable(asked, "the list of pods is missing", Reached::No))?;
            let pagination = Pagination::of(list.pagination)
                .ok_or_else(|| unreadable(asked, "where the list goes on cannot be read", Reached::No))?;
            let next = pagination.next_cursor.filter(|cursor| !cursor.is_empty());
            match (pagination.has_next_page, next) {
                (Some(true), None) => Err(unreadable(asked, "the list goes on, but not where", Reached::No)),
                (Some(false), _) => Ok(Page { items, next: None }),
                (_, next) => Ok(Page { items, next }),
            }
        };
        pages::all(MOST_PAGES, page).await.map_err(|error| match error {
            PagesError::Page(error) => error,
            PagesError::Repeated => unreadable(asked, "the list of pods goes in circles", Reached::No),
            PagesError::TooMany(most) => {
                unreadable(asked, &format!("the list of pods has over {most} pages"), Reached::No)
            }
        })
    }

    /// Asks for one pod; none if there is no such pod.
    pub(super) async fn pod(&self, id: &str, doing: &'static str) -> Result<Option<Pod>> {
        let asked = self.asked(doing);
        let path = self.pod_path(id, &asked)?;
        let answer = self.get(&path, &asked).await?;
        if is_unknown(&answer) {
            return Ok(None);
        }
        let pod: Pod = read(&answer, &asked)?;
        match (pod.id.as_deref(), &pod.status) {
            (Some(told), _) if told != id => {
                Err(unreadable(&asked, "it is about another pod", Reached::Maybe))
            }
            // Else what cannot be told would look like a pod that is nowhere yet.
            (None, _) => Err(unreadable(&asked, "the id of the pod is missing", Reached::Maybe)),
            (_, None) => Err(unreadable(&asked, "the status of the pod is missing", Reached::Maybe)),
            _ => Ok(Some(pod)),
        }
    }

    /// Sends a create and returns the answer as it is.
    pub(super) async fn create(&self, body: &Value, attempt: &Attempt) -> Result<Answer> {
        let asked = Asked { attempt: Some(attempt), ..self.asked(CREATING) };
        let request = self.request(Method::POST, "/v2/pods").json(body);
        self.send(request.retry(Retry::Create).within(CREATE_WITHIN).each(CREATE_TIMEOUT), &asked).await
    }

    /// Deletes a pod; false if there is no such pod.
    pub(super) async fn delete(&self, id: &str) -> Result<bool> {
        let asked = self.asked(DELETING);
        let path = self.pod_path(id, &asked)?;
        let answer = self.send(self.request(Method::DELETE, &path), &asked).await?;
        match () {
            () if answer.is_success() => Ok(true),
            () if is_unknown(&answer) => Ok(false),
            () => Err(refused(&answer, &asked)),
        }
    }

    /// Opens a log of a pod, from `tail` lines before its end. The stream stays open and sends nothing until there is a line
    /// (docs.runpod.io/api-reference-v2, `getPodLogs`).
    pub(super) async fn log(
        &self,
        id: &str,
        source: LogSource,
        tail: u32,
        within: Duration,
    ) -> Result<Stream> {
        let asked = self.asked("reading the pod's log");
        let source = match source {
            LogSource::Container => "container",
            LogSource::System => "system",
        };
        let pairs = query([("source", source), ("tail", &tail.to_string())]);
        let path = format!("{}/logs?{pairs}", self.pod_path(id, &asked)?);
        let request = self.request(Method::GET, &path).header(ACCEPT, "text/event-stream").within(within);
        request.open().await.map_err(|error| Error::unanswered(error, &self.account, asked.doing))
    }

    /// Returns a pod's path. An id that is no single segment would address something else, the whole list in the worst case.
    fn pod_path(&self, id: &str, asked: &Asked<'_>) -> Result<String> {
        if id.trim().is_empty() || matches!(id, "." | "..") || id.contains(['/', '\\', '?', '#', '%']) {
            let message = format!("`{}` is no pod id", crate::model::words::one_line(id, 80));
            return Err(Box::new(Error::new(
                ErrorKind::Rejected,
                &self.account,
                asked.doing,
                message,
                Reached::No,
            )));
        }
        Ok(format!("/v2/pods/{}", segment(id)))
    }

    fn request(&self, method: Method, path: &str) -> Request {
        self.http
            .request(method, format!("{}{path}", self.base))
            .bearer(&self.key)
            .header(ACCEPT, "application/json")
            .within(self.timeout)
            .paced(&self.pacer)
    }

    async fn get(&self, path: &str, asked: &Asked<'_>) -> Result<Answer> {
        self.send(self.request(Method::GET, path), asked).await
    }

    async fn send(&self, request: Request, asked: &Asked<'_>) -> Result<Answer> {
        request
            .send()
            .await
            .map_err(|error: http::Error| Error::unanswered(error, &self.account, asked.doing))
    }
}

/// What a create is called in messages.
pub(super) const CREATING: &str = "creating the pod";

/// What a delete is called in messages.
pub(super) const DELETING: &str = "deleting the pod";

/// Whether RunPod itself says that the thing does not exist. A 404 of something in between, or of a path that the server
/// does not have (a wrong endpoint), says nothing about the thing.
fn is_unknown(answer: &Answer) -> bool {
    answer.status == 404
        && Problem::of(answer.status, &answer.body).is_some_and(|problem| {
            !problem.detail.unwrap_or_default().to_lowercase().contains("requested path")
        })
}

/// Reads a good answer, or says what the bad one means.
fn read<T: DeserializeOwned>(answer: &Answer, asked: &Asked<'_>) -> Result<T> {
    if !answer.is_success() {
        return Err(refused(answer, asked));
    }
    let value: Value = answer.json().map_err(|error| {
        // Only the place: the text of the error could quote the body.
        let what = format!("no such JSON as expected (line {}, column {})", error.line(), error.column());
        unreadable(asked, &what, Reached::No)
    })?;
    object(value).ok_or_else(|| unreadable(asked, "it is no object", Reached::No))
}
