//! What a request carries: JSON or a form, and headers that are secret.

use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use serde_json::Value;

use super::client::Request;
use crate::model::secret::Secret;

impl Request {
    /// Sets a JSON body.
    pub fn json(mut self, body: &Value) -> Self {
        self.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.body = Some(body.to_string().into_bytes());
        self
    }

    /// Sets the body of a form (`application/x-www-form-urlencoded`).
    pub fn form(mut self, pairs: &[(&str, &str)]) -> Self {
        let text = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        self.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        self.body = Some(text.into_bytes());
        self
    }

    /// Adds a header that may be secret, by a name from outside.
    pub fn secret_header(mut self, name: &str, value: &Secret) -> Self {
        match (HeaderName::try_from(name), HeaderValue::try_from(value.expose())) {
            (Ok(name), Ok(mut value)) => {
                value.set_sensitive(true);
                self.headers.insert(name, value);
            }
            _ => self.broken = Some("a header holds characters that no header takes"),
        }
        self
    }
}
