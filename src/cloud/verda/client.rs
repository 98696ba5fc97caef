//! One function for each call of the API (`api.verda.com/v1/docs`).

use std::fmt;
use std::time::Duration;

use reqwest::header::ACCEPT;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::CREATE_TIMEOUT;
use super::credentials::Credentials;
use super::errors::{Asked, Attempt, is_unknown, not_admitted, refused, unreadable};
use super::wire::{
    self, Event, Image, Instance, KeyRow, Location, Stock, TokenAnswer, TypeRow, Volume, VolumeType, told,
};
use crate::cloud::lenient::each;
use crate::cloud::{Error, Reached, Result, Setup};
use crate::http::address::{query, segment};
use crate::http::token::{Granted, Tokens};
use crate::http::{Answer, Client, Method, Request, Retry};
use crate::model::account::AccountId;
use crate::model::secret::Secret;
use crate::model::words::one_line;

/// How long the create may take with waiting for the rate window: the try itself and half a minute of patience.
const CREATE_WITHIN: Duration = CREATE_TIMEOUT.saturating_add(Duration::from_secs(31));

/// A token whose answer names no life is taken for one of so many seconds.
const SHORT_LIFE: f64 = 60.0;

/// How long after a lost answer the key is made once more.
const KEY_AGAIN: Duration = Duration::from_millis(250);

/// What a look is called in messages.
pub(super) const LOOKING: &str = "looking at the machine";

/// What a create is called in messages.
pub(super) const CREATING: &str = "creating the machine";

/// What a delete is called in messages.
pub(super) const DELETING: &str = "deleting the machine";

/// The API with the account's credentials.
pub(super) struct Api {
    http: Client,
    account: AccountId,
    base: String,
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
            .finish_non_exhaustive()
    }
}

impl Api {
    /// Returns the API for an account. No request.
    pub(super) fn new(setup: &Setup, credentials: Credentials, http: Client) -> Self {
        let pace = format!("verda {} {}", setup.endpoint, setup.secret_mark);
        Api {
            http,
            account: setup.account.clone(),
            base: format!("{}/v1", setup.endpoint),
            tokens: Tokens::new(
                setup.cache.as_ref().map(|cache| cache.join("tokens")).as_deref(),
                pace.clone(),
            ),
            pace,
            credentials,
            timeout: setup.timeout,
        }
    }

    /// Returns the circumstances of a request, for its errors.
    pub(super) fn asked(&self, doing: &'static str) -> Asked<'_> {
        Asked { account: &self.account, doing, secret: &self.credentials.client_secret, attempt: None }
    }

    /// Returns where machines are made.
    pub(super) fn instances_url(&self) -> String {
        format!("{}/instances", self.base)
    }

    /// Makes sure that there is a token, so that calls that go out at once need not wait for each other.
    pub(super) async fn log_in(&self) -> Result<()> {
        self.token(&self.asked("logging in")).await.map(drop)
    }

    /// Lists the instance types with their prices. Needs no credentials.
    pub(super) async fn types(&self, doing: &'static str) -> Result<Vec<TypeRow>> {
        self.public_list("/instance-types?currency=usd", doing).await
    }

    /// Lists the types of volumes with their prices. Needs no credentials.
    pub(super) async fn volume_types(&self) -> Result<Vec<VolumeType>> {
        self.public_list("/volume-types?currency=usd", "reading the prices of disks").await
    }

    /// Lists the locations.
    pub(super) async fn locations(&self) -> Result<Vec<Location>> {
        self.list("/locations", "listing locations").await.map(each)
    }

    /// Lists what is in stock.
    pub(super) async fn stock(&self, spot: bool) -> Result<Vec<Stock>> {
        self.list(&format!("/instance-availability?is_spot={spot}"), "listing offers").await.map(each)
    }

    /// Asks whether one type is in stock in one location; not if Verda does not know it.
    pub(super) async fn in_stock(&self, instance_type: &str, location: &str, spot: bool) -> Result<bool> {
        let asked = self.asked("checking the offer again");
        let spot = spot.to_string();
        let pairs = query([("location_code", location), ("is_spot", spot.as_str())]);
        let path = format!("/instance-availability/{}?{pairs}", segment(instance_type));
        let answer = self.get(&path, &asked).await?;
        if is_unknown(&answer) || answer.status == 400 {
            return Ok(false);
        }
        match read::<Value>(&answer, &asked)? {
            Value::Bool(is) => Ok(is),
            // Older servers.
            Value::String(word) if word == "true" => Ok(true),
            Value::String(word) if word == "false" => Ok(false),
            _ => Err(unreadable(&asked, "neither true nor false", Reached::No)),
        }
    }

    /// Lists the images of a type, none if Verda does not know it.
    pub(super) async fn images(&self, instance_type: &str) -> Result<Option<Vec<Image>>> {
        let asked = self.asked("listing images");
        let path = format!("/images?{}", query([("instance_type", instance_type)]));
        let answer = self.get(&path, &asked).await?;
        if is_unknown(&answer) {
            return Ok(None);
        }
        read(&answer, &asked).map(each).map(Some)
    }

    /// Lists all machines that are not gone, as they come.
    pub(super) async fn instances(&self, doing: &'static str) -> Result<Vec<Value>> {
        self.list("/instances", doing).await
    }

    /// Asks for one machine; none if there is no such machine. That is believed only when the list, which must come, does not
    /// show it either: a wrong endpoint knows nothing, too.
    pub(super) async fn instance(&self, id: &str, doing: &'static str) -> Result<Option<Instance>> {
        let asked = self.asked(doing);
        let answer = self.get(&format!("/instances/{}", self.id(id, &asked)?), &asked).await?;
        if !is_unknown(&answer) {
            let instance = wire::one(read(&answer, &asked)?);
            return instance.map(Some).ok_or_else(|| unreadable(&asked, "no machine in it", Reached::No));
        }
        let listed = each::<Instance>(self.instances(doing).await?);
        Ok(listed.into_iter().find(|instance| instance.id.as_deref() == Some(id)))
    }

    /// Sends a create and returns the answer as it is.
    pub(super) async fn create(&self, body: &Value, attempt: &Attempt) -> Result<Answer> {
        let asked = Asked { attempt: Some(attempt), ..self.asked(CREATING) };
        let token = self.token(&asked).await?;
        let request = self.request(Method::POST, "/instances").bearer(&token).json(body);
        // Not again after a 401: another token is no reason to buy twice.
        request
            .retry(Retry::Create)
            .within(CREATE_WITHIN)
            .each(CREATE_TIMEOUT)
            .send()
            .await
            .map_err(|error| Error::unanswered(error, &self.account, CREATING))
    }

    /// Sends a delete and returns the answer as it is. Volumes that are not named stay.
    pub(super) async fn delete(&self, id: &str, volumes: &[String]) -> Result<Answer> {
        let asked = self.asked(DELETING);
        self.id(id, &asked)?;
        let body = json!({"action": "delete", "id": [id], "volume_ids": volumes, "delete_permanently": true});
        self.send(&asked, || self.request(Method::PUT, "/instances").json(&body)).await
    }

    /// Lists the volumes that are not in the trash, as they come.
    pub(super) async fn volumes(&self) -> Result<Vec<Value>> {
        self.list("/volumes", "listing volumes").await
    }

    /// Lists the volumes in the trash, as they come.
    pub(super) async fn trash(&self) -> Result<Vec<Value>> {
        self.list("/volumes/trash", "listing the trash").await
    }

    /// Asks for one volume; none if there is no such volume.
    pub(super) async fn volume(&self, id: &str) -> Result<Option<Volume>> {
        let asked = self.asked("looking at a volume");
        let answer = self.get(&format!("/volumes/{}", self.id(id, &asked)?), &asked).await?;
        if is_unknown(&answer) {
            return Ok(None);
        }
        let volume = wire::one(read(&answer, &asked)?);
        volume.map(Some).ok_or_else(|| unreadable(&asked, "no volume in it", Reached::No))
    }

    /// Deletes a volume for good, also out of the trash, and returns the answer as it is.
    pub(super) async fn delete_volume(&self, id: &str) -> Result<Answer> {
        let asked = self.asked("deleting a volume");
        let path = format!("/volumes/{}", self.id(id, &asked)?);
        let body = json!({"is_permanent": true});
        self.send(&asked, || self.request(Method::DELETE, &path).json(&body)).await
    }

    /// Lists the ssh key objects of the project.
    pub(super) async fn keys(&self) -> Result<Vec<KeyRow>> {
        self.list("/ssh-keys", "listing ssh keys").await.map(each)
    }

    /// Makes an ssh key object and returns its id. Sent once more after a lost answer: whoever deletes it deletes all of its
    /// name. A refusal then says nothing about the first.
    pub(super) async fn add_key(&self, name: &str, key: &str) -> Result<String> {
        match self.add_key_once(name, key).await {
            Err(error) if error.reached == Reached::Maybe => {}
            other => return other,
        }
        tokio::time::sleep(KEY_AGAIN).await;
        self.add_key_once(name, key).await.map_err(|mut error| {
            if error.reached == Reached::No {
                error.reached = Reached::Maybe;
            }
            error
        })
    }

    async fn add_key_once(&self, name: &str, key: &str) -> Result<String> {
        let asked = self.asked("registering the ssh key");
        let body = json!({"name": name, "key": key});
        let answer = self
            .send(&asked, || self.request(Method::POST, "/ssh-keys").retry(Retry::Create).json(&body))
            .await?;
        if !answer.is_success() {
            return Err(refused(&answer, &asked));
        }
        made_id(&answer).ok_or_else(|| unreadable(&asked, "it holds no key id", Reached::Yes))
    }

    /// Deletes an ssh key object; that it is not there is no error.
    pub(super) async fn delete_key(&self, id: &str) -> Result<()> {
        let asked = self.asked("deleting the ssh key");
        let path = format!("/ssh-keys/{}", self.id(id, &asked)?);
        let answer = self.send(&asked, || self.request(Method::DELETE, &path)).await?;
        if answer.is_success() || is_unknown(&answer) { Ok(()) } else { Err(refused(&answer, &asked)) }
    }

    /// Returns what happened to one machine (beta).
    pub(super) async fn journal_of(&self, id: &str) -> Result<Vec<Event>> {
        let asked = self.asked("reading the journal");
        let path = format!("/journal/compute/{}?page=1&pageSize=100", self.id(id, &asked)?);
        self.list(&path, "reading the journal").await.map(each)
    }

    /// Returns the last thing that happened in the project (beta).
    pub(super) async fn journal(&self) -> Result<Vec<Event>> {
        self.list("/journal?page=1&pageSize=1", "reading the journal").await.map(each)
    }

    /// Returns an id as a part of a path. One that is no single segment would address something else.
    fn id(&self, id: &str, asked: &Asked<'_>) -> Result<String> {
        if is_id(id) {
            return Ok(segment(id));
        }
        let message = format!("`{}` is no id of Verda's", one_line(id, 80));
        Err(asked.error(crate::cloud::ErrorKind::Rejected, message, Reached::No))
    }

    async fn public_list<T: DeserializeOwned>(&self, path: &str, doing: &'static str) -> Result<Vec<T>> {
        let asked = self.asked(doing);
        let answer = self.request(Method::GET, path).send().await;
        let answer = answer.map_err(|error| Error::unanswered(error, &self.account, doing))?;
        rows(&answer, &asked).map(each)
    }

    async fn list(&self, path: &str, doing: &'static str) -> Result<Vec<Value>> {
        let asked = self.asked(doing);
        rows(&self.get(path, &asked).await?, &asked)
    }

    async fn get(&self, path: &str, asked: &Asked<'_>) -> Result<Answer> {
        self.send(asked, || self.request(Method::GET, path)).await
    }

    fn request(&self, method: Method, path: &str) -> Request {
        // Verda counts for each method and path beside the project as a whole.
        let way = path.split('?').next().unwrap_or(path);
        let pacer = self.http.pacer(&format!("{} {method} {way}", self.pace));
        self.http
            .request(method, format!("{}{path}", self.base))
            .header(ACCEPT, "application/json")
            .within(self.timeout)
            .paced(&pacer)
    }

    /// Sends a request that may be repeated; once more with a new token when this one is not taken.
    async fn send(&self, asked: &Asked<'_>, request: impl Fn() -> Request) -> Result<Answer> {
        let once = async |token: &Secret| {
            let answer = request().bearer(token).send().await;
            answer.map_err(|error| Error::unanswered(error, &self.account, asked.doing))
        };
        let token = self.token(asked).await?;
        let answer = once(&token).await?;
        if answer.status != 401 {
            return Ok(answer);
        }
        self.tokens.reject(&token).await;
        once(&self.token(asked).await?).await
    }

    async fn token(&self, asked: &Asked<'_>) -> Result<Secret> {
        self.tokens.get(|| self.exchange(asked)).await
    }

    /// Exchanges the credentials for a token. Short-lived commands never need the refresh token.
    async fn exchange(&self, asked: &Asked<'_>) -> Result<Granted> {
        let Credentials { client_id, client_secret } = &self.credentials;
        let body = json!({
            "grant_type": "client_credentials",
            "client_id": client_id,
            "client_secret": client_secret.expose(),
        });
        let request = self.request(Method::POST, "/oauth2/token").retry(Retry::Safe).json(&body);
        let answer = request.send().await.map_err(|error| {
            let mut error = Error::unanswered(error, &self.account, asked.doing);
            // The request that needs the token was not sent.
            error.reached = Reached::No;
            error
        })?;
        let asked = Asked { attempt: None, account: asked.account, doing: asked.doing, secret: asked.secret };
        if !answer.is_success() {
            return Err(not_admitted(&answer, &asked));
        }
        let granted: TokenAnswer = read(&answer, &asked)?;
        let Some(token) = told(granted.access_token.as_ref()) else {
            return Err(unreadable(&asked, "it holds no access token", Reached::No));
        };
        let seconds = granted.expires_in.filter(|seconds| (0.0..1e9).contains(seconds)).unwrap_or(SHORT_LIFE);
        Ok(Granted { token: Secret::trimmed(token), lives: Duration::from_secs_f64(seconds) })
    }
}

/// Whether a text can be an id: they are UUIDs, but nothing depends on it.
pub(super) fn is_id(text: &str) -> bool {
    (4..=64).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

/// Whether a text is a UUID.
fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, b)| match at {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
}

/// Finds the id in an answer to something that was made: bare text, a JSON string, or a member `id`. What stands there without
/// a name may be any word (`OK`), so that only a UUID is taken for an id.
pub(super) fn made_id(answer: &Answer) -> Option<String> {
    let text = answer.text();
    let nameless = match answer.json::<Value>() {
        Ok(Value::Object(body)) => {
            return Some(body.get("id")?.as_str()?.trim().to_owned()).filter(|id| is_id(id));
        }
        Ok(Value::String(text)) => text,
        Ok(_) => return None,
        Err(_) => text,
    };
    Some(nameless.trim().to_owned()).filter(|id| is_uuid(id))
}

/// Reads a list. Odd rows are passed over where they are used; a list of nothing else is no empty list.
fn rows(answer: &Answer, asked: &Asked<'_>) -> Result<Vec<Value>> {
    let rows: Vec<Value> = read(answer, asked)?;
    match rows.is_empty() || rows.iter().any(Value::is_object) {
        true => Ok(rows),
        false => Err(unreadable(asked, "no row of the list is one", Reached::No)),
    }
}

/// Reads a good answer, or says what the bad one means.
fn read<T: DeserializeOwned>(answer: &Answer, asked: &Asked<'_>) -> Result<T> {
    if !answer.is_success() {
        return Err(refused(answer, asked));
    }
    answer.json().map_err(|error| {
        // Only the place: the text of the error could quote the body.
        let what = format!("no such JSON as expected (line {}, column {})", error.line(), error.column());
        unreadable(asked, &what, Reached::No)
    })
}
