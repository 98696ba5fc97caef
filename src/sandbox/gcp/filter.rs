//! The query parameter `filter` of lists, in its two styles, which cannot be mixed.
//!
//! `labels.team = llama`, `(a = x) AND (b : *)`, `NOT a = x`, and the old one: `name eq "gpu-.*"`. Written from the description of
//! the parameter in the discovery document and from AIP-160 (<https://google.aip.dev/160>). Of regular expressions only `.*` and
//! groups of alternatives are understood; another one is refused.

use serde_json::Value;

#[derive(Debug)]
enum Node {
    All(Vec<Node>),
    Any(Vec<Node>),
    Not(Box<Node>),
    Term { path: Vec<String>, op: String, value: String },
}

/// A filter that was read.
#[derive(Debug)]
pub(super) struct Filter(Node);

impl Filter {
    /// Reads a filter.
    ///
    /// # Errors
    ///
    /// The sentence that refuses it.
    pub(super) fn read(text: &str) -> Result<Filter, String> {
        let refuse =
            || format!("Invalid value for field 'filter': '{text}'. Invalid list filter expression.");
        let tokens = split(text).ok_or_else(refuse)?;
        let old = tokens.iter().any(|token| matches!(token.as_str(), "eq" | "ne"));
        let new = tokens.iter().any(|token| is_sign(token));
        if old && new {
            return Err(refuse());
        }
        let mut rest = tokens.as_slice();
        let node = any(&mut rest, 0).filter(|_| rest.is_empty()).ok_or_else(refuse)?;
        Ok(Filter(node))
    }

    /// Whether it names a field.
    pub(super) fn names(&self, field: &str) -> bool {
        fn within(node: &Node, field: &str) -> bool {
            match node {
                Node::All(nodes) | Node::Any(nodes) => nodes.iter().any(|node| within(node, field)),
                Node::Not(node) => within(node, field),
                Node::Term { path, .. } => path.join(".") == field,
            }
        }
        within(&self.0, field)
    }

    /// Whether a resource as it is shown fits.
    pub(super) fn fits(&self, shown: &Value) -> bool {
        holds(&self.0, shown)
    }
}

fn is_sign(token: &str) -> bool {
    matches!(token, "=" | "!=" | ">" | "<" | ">=" | "<=" | ":")
}

/// Words, signs and brackets. Text in quotes is one word, marked by a quote at its beginning.
fn split(text: &str) -> Option<Vec<String>> {
    let mut tokens = Vec::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' => {}
            '(' | ')' => tokens.push(letter.to_string()),
            '=' | ':' => tokens.push(letter.to_string()),
            '!' | '<' | '>' => {
                let two = letters.next_if_eq(&'=').is_some();
                if letter == '!' && !two {
                    return None;
                }
                tokens.push(if two { format!("{letter}=") } else { letter.to_string() });
            }
            '"' | '\'' => {
                let mut word = String::from('"');
                loop {
                    match letters.next()? {
                        '\\' => word.push(letters.next()?),
                        end if end == letter => break,
                        other => word.push(other),
                    }
                }
                tokens.push(word);
            }
            _ => {
                let mut word = String::from(letter);
                // In the old style a value may hold brackets, as in `name eq (a|b)-.*`; it begins with one then.
                while let Some(next) = letters.next_if(|next| !" ()=!<>:\"".contains(*next)) {
                    word.push(next);
                }
                tokens.push(word);
            }
        }
    }
    Some(tokens)
}

fn any(rest: &mut &[String], depth: usize) -> Option<Node> {
    let mut nodes = vec![all(rest, depth)?];
    while rest.first().is_some_and(|token| token == "OR") {
        *rest = &rest[1..];
        nodes.push(all(rest, depth)?);
    }
    if nodes.len() == 1 { nodes.pop() } else { Some(Node::Any(nodes)) }
}

fn all(rest: &mut &[String], depth: usize) -> Option<Node> {
    let mut nodes = vec![one(rest, depth)?];
    loop {
        match rest.first().map(String::as_str) {
            Some("AND") => {
                *rest = &rest[1..];
                nodes.push(one(rest, depth)?);
            }
            None | Some(")" | "OR") => break,
            Some(_) => nodes.push(one(rest, depth)?),
        }
    }
    if nodes.len() == 1 { nodes.pop() } else { Some(Node::All(nodes)) }
}

fn one(rest: &mut &[String], depth: usize) -> Option<Node> {
    let (first, after) = rest.split_first()?;
    *rest = after;
    match first.as_str() {
        _ if depth > 32 => None,
        "(" => {
            let node = any(rest, depth + 1)?;
            let (close, after) = rest.split_first()?;
            *rest = after;
            (close == ")").then_some(node)
        }
        "NOT" | "-" => Some(Node::Not(Box::new(one(rest, depth + 1)?))),
        name if name.starts_with('"') || is_sign(name) || name == ")" => None,
        name => {
            let (op, after) = rest.split_first()?;
            let (value, after) = after.split_first()?;
            *rest = after;
            if !(is_sign(op) || op == "eq" || op == "ne") || is_sign(value) || value == "(" || value == ")" {
                return None;
            }
            let path = name.split('.').map(str::to_owned).collect();
            let value = value.strip_prefix('"').unwrap_or(value).to_owned();
            if matches!(op.as_str(), "eq" | "ne") && !understood(&value) {
                return None;
            }
            Some(Node::Term { path, op: op.clone(), value })
        }
    }
}

fn holds(node: &Node, shown: &Value) -> bool {
    match node {
        Node::All(nodes) => nodes.iter().all(|node| holds(node, shown)),
        Node::Any(nodes) => nodes.iter().any(|node| holds(node, shown)),
        Node::Not(node) => !holds(node, shown),
        Node::Term { path, op, value } => {
            let found = path.iter().try_fold(shown, |value, name| value.get(name));
            let text = found.map(|found| match found {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            });
            match (op.as_str(), text) {
                (":", Some(_)) if value == "*" => true,
                (":", Some(text)) => text.contains(value.trim_matches('*')),
                ("=", Some(text)) => wild(value, &text),
                ("!=", Some(text)) => !wild(value, &text),
                ("!=" | "ne", None) => true,
                ("eq", Some(text)) => pattern(value, &text),
                ("ne", Some(text)) => !pattern(value, &text),
                (order @ (">" | "<" | ">=" | "<="), Some(text)) => {
                    let pair = text.parse::<f64>().ok().zip(value.parse::<f64>().ok());
                    let ordering = match pair {
                        Some((left, right)) => left.total_cmp(&right),
                        None => text.as_str().cmp(value.as_str()),
                    };
                    match order {
                        ">" => ordering.is_gt(),
                        "<" => ordering.is_lt(),
                        ">=" => ordering.is_ge(),
                        _ => ordering.is_le(),
                    }
                }
                _ => false,
            }
        }
    }
}

/// AIP-160: `*` at either end of text stands for anything.
fn wild(wanted: &str, text: &str) -> bool {
    match (wanted.strip_prefix('*'), wanted.strip_suffix('*')) {
        (Some(_), Some(_)) => text.contains(wanted.trim_matches('*')),
        (Some(end), None) => text.ends_with(end),
        (None, Some(start)) => text.starts_with(start),
        (None, None) => wanted == text,
    }
}

/// Whether a regular expression is one of those that are played.
fn understood(expression: &str) -> bool {
    let plain = expression.replace(".*", "");
    !plain.contains(['[', ']', '{', '}', '+', '?', '^', '$', '\\', '*']) && alternatives(expression).is_some()
}

/// Whether the whole text fits an expression of letters, `.*` and one group of alternatives.
fn pattern(expression: &str, text: &str) -> bool {
    alternatives(expression).unwrap_or_default().iter().any(|one| {
        let parts: Vec<&str> = one.split(".*").collect();
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return false };
        if parts.len() == 1 {
            return one == text;
        }
        let Some(mut rest) = text.strip_prefix(first) else { return false };
        for part in &parts[1..parts.len() - 1] {
            match rest.find(part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        rest.ends_with(last)
    })
}

fn alternatives(expression: &str) -> Option<Vec<String>> {
    let Some((before, rest)) = expression.split_once('(') else {
        return Some(expression.split('|').map(str::to_owned).collect());
    };
    let (group, after) = rest.split_once(')')?;
    if after.contains(['(', ')', '|']) || before.contains(['|', ')']) || group.contains('(') {
        return None;
    }
    Some(group.split('|').map(|one| format!("{before}{one}{after}")).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_styles() {
        let shown = json!({"name": "g2-standard-4", "labels": {"gpuprov": "1", "owner": "ana"}, "targetId": "72",
                           "operationType": "compute.instances.preempted", "network": "https://x/networks/default"});
        for (text, fits) in [
            ("labels.gpuprov=1", true),
            ("labels.gpuprov = 1", true),
            ("labels.gpuprov = \"1\"", true),
            ("(labels.gpuprov = 1) AND (labels.owner = ana)", true),
            ("labels.gpuprov=1 labels.owner=bob", false),
            ("labels.owner:*", true),
            ("labels.nobody:*", false),
            ("NOT labels.nobody:*", true),
            ("labels.owner != bob", true),
            ("(operationType = \"compute.instances.preempted\") AND (targetId = 72)", true),
            ("targetId = 73 OR targetId > 71", true),
            ("name = g2-*", true),
            ("name eq \"(g2|a2|a3|a4)-.*\"", true),
            ("name eq n1-.*", false),
            ("name ne n1-.*", true),
            ("network eq .*/default", true),
        ] {
            assert_eq!(Filter::read(text).unwrap().fits(&shown), fits, "{text}");
        }
        for bad in [
            "",
            "name",
            "name =",
            "= x",
            "(name = x",
            "name eq x AND labels.a = b",
            "name eq [a-z]+",
            "name = (x",
        ] {
            assert!(Filter::read(bad).is_err(), "{bad}");
        }
        assert!(Filter::read("targetId = 1").unwrap().names("targetId"));
    }
}
