//! One function for each call of the API (docs.vast.ai/api-reference). Paths end with a slash, as the official client sends
//! them.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::header::ACCEPT;
use serde_json::{Map, Value, json};

use super::CREATE_TIMEOUT;
use super::errors::{Asked, Attempt, good, is_quota_spent, is_unknown, unreadable};
use super::wire::{Instance, User, id_of};
use crate::cloud::lenient::object;
use crate::cloud::{Error, ErrorKind, Reached, Result, Setup};
use crate::http::address::query;
use crate::http::pages::{self, Page, PagesError};
use crate::http::{self, Answer, Client, Method, Pacer, Request, Retry};
use crate::model::account::AccountId;
use crate::model::secret::Secret;

/// A page holds 25 machines at most.
const PAGE: &str = "25";

/// More pages than anybody has; a list that goes on beyond is broken.
const MOST_PAGES: usize = 400;

/// How long the create may take with waiting for its turn: the try itself and half a minute of patience.
const CREATE_WITHIN: Duration = CREATE_TIMEOUT.saturating_add(Duration::from_secs(31));

/// What a create is called in messages.
pub(super) const CREATING: &str = "creating the machine";

/// What a delete is called in messages.
pub(super) const DELETING: &str = "deleting the machine";

/// Requests may come closer together than they were sent.
const ON_THE_WAY: Duration = Duration::from_millis(150);

/// The calls that are counted, each for itself (docs.vast.ai/api-reference/rate-limits-and-errors, `x-rate-limit`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Search,
    Create,
    List,
    Get,
    Delete,
    Manage,
    Attach,
    User,
}

impl Call {
    /// How many requests in which time.
    fn limit(self) -> (usize, Duration) {
        match self {
            Call::Search => (10, Duration::from_secs(60)),
            Call::Create => (1, Duration::from_millis(4500)),
            Call::Get => (1, Duration::from_secs(2)),
            Call::Delete => (1, Duration::from_secs(3)),
            Call::List | Call::Manage | Call::Attach | Call::User => (1, Duration::from_secs(1)),
        }
    }

    const ALL: [Call; 8] = [
        Call::Search,
        Call::Create,
        Call::List,
        Call::Get,
        Call::Delete,
        Call::Manage,
        Call::Attach,
        Call::User,
    ];
}

/// The API with the account's key.
pub(super) struct Api {
    http: Client,
    pacers: [Arc<Pacer>; Call::ALL.len()],
    account: AccountId,
    base: String,
    key: Secret,
    timeout: Duration,
    backoff: Duration,
    create_backoff: Duration,
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

impl Api {
    /// Returns the API for an account. No request.
    pub(super) fn new(setup: &Setup, key: Secret, http: Client) -> Self {
        // `[wait] poll` replaces every pace of a cloud.
        let own_pace = setup.poll.unwrap_or(Duration::MAX);
        let pacers = Call::ALL.map(|call| {
            let pacer = http.pacer(&format!("vast {} {} {call:?}", setup.endpoint, setup.secret_mark));
            let (most, within) = call.limit();
            pacer.limit(most, (within + ON_THE_WAY).min(own_pace));
            pacer
        });
        Api {
            http,
            pacers,
            account: setup.account.clone(),
            base: setup.endpoint.clone(),
            key,
            timeout: setup.timeout,
            backoff: Duration::from_secs(2).min(own_pace),
            create_backoff: Duration::from_secs(24).min(own_pace),
        }
    }

    /// Returns the circumstances of a request, for its errors.
    pub(super) fn asked(&self, doing: &'static str) -> Asked<'_> {
        Asked { account: &self.account, doing, secrets: vec![self.key.expose()], attempt: None }
    }

    /// Returns where an ask is taken.
    pub(super) fn ask_url(&self, ask: u64) -> String {
        format!("{}/api/v0/asks/{ask}/", self.base)
    }

    /// Asks who the key belongs to.
    pub(super) async fn user(&self) -> Result<User> {
        let asked = self.asked("checking the key");
        let request = self.request(Call::User, Method::GET, "/api/v0/users/current/");
        let answer = self.send(request, &asked).await?;
        Ok(User::of(&good(&answer, &asked)?))
    }

    /// Searches; the rows as they come.
    pub(super) async fn search(&self, body: &Value, doing: &'static str) -> Result<Vec<Value>> {
        let asked = self.asked(doing);
        let request = self
            .request(Call::Search, Method::POST, "/api/v0/bundles/")
            .json(body)
            .retry(Retry::Safe)
            .last_word(is_quota_spent);
        let answer = self.send(request, &asked).await?;
        let mut map = good(&answer, &asked)?;
        match map.remove("offers") {
            Some(Value::Array(rows)) => Ok(rows),
            _ => Err(unreadable(&asked, "the list of offers is missing", Reached::No)),
        }
    }

    /// Sends a create and returns the answer as it is.
    pub(super) async fn create(&self, ask: u64, body: &Value, attempt: &Attempt) -> Result<Answer> {
        let asked = Asked { attempt: Some(attempt), ..self.asked(CREATING) };
        let request = self
            .request(Call::Create, Method::PUT, &format!("/api/v0/asks/{ask}/"))
            .json(body)
            .retry(Retry::Create)
            .backoff(self.create_backoff)
            .within(CREATE_WITHIN)
            .each(CREATE_TIMEOUT);
        self.send(request, &asked).await
    }

    /// Attaches a public key to a machine, beside those that it has. One that is there already is well.
    pub(super) async fn attach(&self, id: &str, public_key: &str) -> Result<()> {
        let asked = self.asked("attaching the ssh key");
        let path = format!("{}ssh/", self.machine_path(id, &asked)?);
        let body = json!({"ssh_key": public_key.trim()});
        let request = self.request(Call::Attach, Method::POST, &path).json(&body).retry(Retry::Safe);
        let answer = self.send(request, &asked).await?;
        match good(&answer, &asked) {
            Ok(_) => Ok(()),
            Err(error) if error.message.to_lowercase().contains("already") => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Asks for one machine; none if there is none.
    pub(super) async fn machine(&self, id: &str, doing: &'static str) -> Result<Option<Instance>> {
        let asked = self.asked(doing);
        let path = self.machine_path(id, &asked)?;
        let answer = self.send(self.request(Call::Get, Method::GET, &path), &asked).await?;
        if is_unknown(&answer) {
            return Ok(None);
        }
        // One machine under a plural name; a list of one was seen too.
        let machine = match good(&answer, &asked)?.remove("instances") {
            Some(Value::Array(mut list)) if list.len() <= 1 => list.pop().unwrap_or(Value::Null),
            Some(one) => one,
            None => return Err(unreadable(&asked, "the machine is missing", Reached::No)),
        };
        match &machine {
            Value::Null => return Ok(None),
            Value::Object(map) if map.is_empty() => return Ok(None),
            Value::Object(_) => {}
            _ => return Err(unreadable(&asked, "the machine is not an object", Reached::No)),
        }
        let read: Instance = serde_json::from_value(machine).unwrap_or_default();
        match read.id {
            Some(told) if told.to_string() == id => Ok(Some(read)),
            Some(_) => Err(unreadable(&asked, "it is about another machine", Reached::No)),
            None => Err(unreadable(&asked, "the id of the machine is missing", Reached::No)),
        }
    }

    /// Asks the list for one machine: it tells the ports where the machine itself does not.
    pub(super) async fn listed(&self, id: &str, doing: &'static str) -> Result<Option<Instance>> {
        let asked = self.asked(doing);
        let number = self.number(id, &asked)?;
        let filter = json!({"id": {"eq": number}}).to_string();
        let page = self.page(&filter, None, &asked).await?;
        Ok(page.items.into_iter().filter_map(object::<Instance>).find(|machine| machine.id == Some(number)))
    }

    /// Lists all machines, as they come, all pages.
    pub(super) async fn machines(&self) -> Result<Vec<Value>> {
        let asked = &self.asked("listing machines");
        let page = async |token: Option<String>| self.page("{}", token, asked).await;
        pages::all(MOST_PAGES, page).await.map_err(|error| match error {
            PagesError::Page(error) => error,
            PagesError::Repeated => unreadable(asked, "the list of machines goes in circles", Reached::No),
            PagesError::TooMany(most) => {
                unreadable(asked, &format!("the list of machines has over {most} pages"), Reached::No)
            }
        })
    }

    /// One page. A list counts only if it is one: the retired one answered with nothing, and machines were lost.
    async fn page(&self, filter: &str, token: Option<String>, asked: &Asked<'_>) -> Result<Page<Value>> {
        let order = "[{\"col\":\"id\",\"dir\":\"asc\"}]";
        let mut pairs = vec![("limit", PAGE), ("select_filters", filter), ("order_by", order)];
        pairs.extend(token.as_deref().map(|token| ("after_token", token)));
        let path = format!("/api/v1/instances/?{}", query(pairs));
        let answer = self.send(self.request(Call::List, Method::GET, &path), asked).await?;
        let mut map = good(&answer, asked)?;
        let Some(Value::Array(items)) = map.remove("instances") else {
            return Err(unreadable(asked, "the list of machines is missing", Reached::No));
        };
        let next = match map.remove("next_token") {
            None | Some(Value::Null) => None,
            Some(Value::String(token)) => Some(token).filter(|token| !token.is_empty()),
            Some(_) => return Err(unreadable(asked, "the list goes on, but not where", Reached::No)),
        };
        Ok(Page { items, next })
    }

    /// Returns how long the next delete has to wait for its turn.
    pub(super) fn delete_turn(&self) -> Duration {
        self.pacers[Call::Delete as usize].turn(Instant::now())
    }

    /// Deletes a machine; false if there is none.
    pub(super) async fn delete(&self, id: &str) -> Result<bool> {
        let asked = self.asked(DELETING);
        let path = self.machine_path(id, &asked)?;
        let answer =
            self.send(self.request(Call::Delete, Method::DELETE, &path).json(&json!({})), &asked).await?;
        if is_unknown(&answer) {
            return Ok(false);
        }
        let map = good(&answer, &asked)?;
        match map.get("success") {
            Some(Value::Bool(true)) => Ok(true),
            _ => Err(unreadable(&asked, "it does not say that it did it", Reached::Maybe)),
        }
    }

    /// Asks once more to start a machine.
    pub(super) async fn start(&self, id: &str) -> Result<()> {
        let asked = self.asked("starting the machine");
        let path = self.machine_path(id, &asked)?;
        let body = json!({"state": "running"});
        let answer = self.send(self.request(Call::Manage, Method::PUT, &path).json(&body), &asked).await?;
        good(&answer, &asked).map(|_: Map<String, Value>| ())
    }

    /// Returns a machine's path. An id that is no number would address something else, the whole list in the worst case.
    fn machine_path(&self, id: &str, asked: &Asked<'_>) -> Result<String> {
        Ok(format!("/api/v0/instances/{}/", self.number(id, asked)?))
    }

    fn number(&self, id: &str, asked: &Asked<'_>) -> Result<u64> {
        let plain = id.bytes().all(|b| b.is_ascii_digit());
        id_of(&Value::from(id)).filter(|number| plain && number.to_string() == id).ok_or_else(|| {
            let message = format!("`{}` is no id of Vast", crate::model::words::one_line(id, 80));
            Box::new(Error::new(ErrorKind::Rejected, &self.account, asked.doing, message, Reached::No))
        })
    }

    fn request(&self, call: Call, method: Method, path: &str) -> Request {
        self.http
            .request(method, format!("{}{path}", self.base))
            .bearer(&self.key)
            .header(ACCEPT, "application/json")
            .within(self.timeout)
            .backoff(self.backoff)
            .paced(&self.pacers[call as usize])
    }

    async fn send(&self, request: Request, asked: &Asked<'_>) -> Result<Answer> {
        request
            .send()
            .await
            .map_err(|error: http::Error| Error::unanswered(error, &self.account, asked.doing))
    }
}
